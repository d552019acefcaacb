// Package model is the port to language models: what a model is asked and what
// it answers. Adapters to providers are modules of their own under provider/;
// they translate data and sort failures, and never retry, wait or count: that
// is done once, by the runtime.
//
// What adapters agree on stands here, too: faults ([Fault], [KindOf]), the calls
// of tools ([CallPart], [CallIDs]), schemas ([PlainTool], [InputSchema], [Subset], [OutputInWords]), what is
// known of a provider's models ([Table]), and for those that speak HTTP an
// [Endpoint], its client, the [Body] of its answers and the [Events] of a stream.
package model
