// Release makes a release of all modules of this tree, and tries it, before anything
// leaves the machine:
//
//	cd tools && GOWORK=off go run ./release -key release.key v0.2.0
//
// works on a clone in fermata-v0.2.0, beside the tree, and leaves there
//
//	source       the clone: the commit "Release v0.2.0", in which the modules require each
//	             other by that version and not by path, its tags, and a commit that goes
//	             back to paths; what to push is said at the end
//	proxy        a Go module proxy with the modules as everybody will get them
//	fermata_*    the command for each platform, with a bill of materials (*.cdx.json)
//	provenance.intoto.json
//	             of which commit and modules they are made, and by which Go
//	SHA256SUMS   the digests of those, and SHA256SUMS.sig, their signature
//
// It refuses a tree with changes, a version that is not greater than the last tag, and a
// changelog with nothing under Unreleased, images without a digest, and a key that is not
// the tree's docs/release.pub. Each binary is built twice and has to be the
// same; a module of somebody else's is tested with the release. -quick leaves out the
// other platforms and, without a key, the signature, and builds the second time with the same build cache. docs/releasing.md
// says what is done with all that.
package main
