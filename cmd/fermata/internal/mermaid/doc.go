// Package mermaid draws flows as Mermaid flowcharts.
package mermaid
