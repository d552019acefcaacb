// Package azure calls models in Azure: OpenAI's, and others of Foundry with the same API.
// It is an adapter for package model. The protocol is provider/openai's. This package
// adds the address and the versions of the API, and signs in to Entra with the official
// SDK.
//
// Begin with [New], and put the [Model] into the worker's Models. One Model serves all
// deployments of one resource. The runtime calls a model by its deployment's name. Azure
// does not say which model a deployment has. So a window is known only if the deployment
// is named after its model, and a price never is: set it with model.WithInfo.
//
// # Sign-in
//
// A key is sent if there is one, in [Options] or $AZURE_OPENAI_API_KEY. Otherwise each
// request carries a token of Entra, from the SDK's default chain: variables, a workload's
// identity, a managed identity, the command line's login. The SDK caches and renews the
// token.
package azure
