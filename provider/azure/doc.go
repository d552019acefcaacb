// Package azure lets agents use models in Azure: OpenAI's, and others of Foundry that
// speak as OpenAI's do. The protocol is provider/openai's; here are the address, the
// versions of the API and the sign-in to Entra, by the official SDK.
//
// A [Model] serves every deployment of one resource; the runtime asks it for one by the
// deployment's name. What a deployment is of Azure does not say, so a model has a window
// only if its deployment bears its name, and never a price: model.WithInfo gives it one.
//
// # Sign-in
//
// A key is sent if there is one, in [Options] or $AZURE_OPENAI_API_KEY. Otherwise each
// request carries a token of Entra, from the SDK's default chain: variables, a workload's
// identity, a managed identity, the command line's login. The SDK keeps a token while it
// lasts, and renews it.
package azure
