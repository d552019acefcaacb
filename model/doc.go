// Package model is the port to language models: what a model is asked and what
// it answers. Adapters to providers are modules of their own under provider/;
// they translate data and sort failures, and never retry, wait or count: that
// is done once, by the runtime.
package model
