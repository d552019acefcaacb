// Package vertex lets agents use models on Google Cloud's Vertex AI: Google's Gemini and
// Anthropic's Claude. The protocols are those of provider/gemini and provider/anthropic;
// here are the addresses and the sign-in to Google Cloud, by the official library.
//
// A [Model] serves all models of a project in one location; the runtime asks it for one
// by Vertex's name, "gemini-3.5-flash" or "claude-sonnet-4-5@20250929". A tuned model of
// Gemini's is "endpoints/ID".
//
// # Sign-in
//
// Each request carries a token of Google's Application Default Credentials: the file that
// $GOOGLE_APPLICATION_CREDENTIALS names, gcloud's login, a workload's identity, or the
// account of the machine. The library keeps a token while it lasts, and renews it.
package vertex
