// Manifests checks the files by which others deploy us: those for Kubernetes, for
// Docker Compose and for Grafana. It decodes them as strictly as their readers can,
// and looks for what no schema says: that parts which name each other agree.
//
//	cd tools && GOWORK=off go run ./manifests ..
//
// prints every fault with its file and field, and exits with 1 if there is one.
package main
