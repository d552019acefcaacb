// Package vertex calls models on Google Cloud's Vertex AI: Google's Gemini and
// Anthropic's Claude. It is an adapter for package model. The protocols are those of
// provider/gemini and provider/anthropic. This package adds the addresses, and signs in
// to Google Cloud with the official library.
//
// Begin with [New], and put the [Model] into the worker's Models. One Model serves all
// models of a project in one location. The runtime calls a model by Vertex's name,
// "gemini-3.5-flash" or "claude-sonnet-4-5@20250929". A tuned model of Gemini's is
// "endpoints/ID".
//
// # Sign-in
//
// Each request carries a token of Google's Application Default Credentials: the file of
// $GOOGLE_APPLICATION_CREDENTIALS, gcloud's login, a workload's identity, or the
// machine's account. The library caches and renews the token.
package vertex
