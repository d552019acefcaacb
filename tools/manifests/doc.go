// Manifests checks the files with which others deploy us: for Kubernetes, Docker Compose
// and Grafana. It decodes them as strictly as their readers can. It also checks what no
// schema says: that parts which name each other agree.
//
//	cd tools && GOWORK=off go run ./manifests ..
//
// prints every fault with its file and field, and exits with 1 if there is one.
package main
