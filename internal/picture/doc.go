// Package picture makes images fit for a model: smaller, or of another type. What it decodes is
// bounded before it is decoded, since an image of a few bytes may claim any size.
package picture
