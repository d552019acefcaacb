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
// It refuses a tree with changes, a version that is not greater than the last tag, a
// changelog with nothing under Unreleased, images without a digest, and a key that does
// not match docs/release.pub. It builds each binary twice, and both must be equal. It
// tests somebody else's module with the release. -quick leaves out other platforms and,
// without a key, the signature; both builds then share a build cache. docs/releasing.md
// says what to do with the result.
package main
