// Package testenv says which tests are run: those that anybody can run in minutes, or all.
package testenv
