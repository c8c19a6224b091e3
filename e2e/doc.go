// Package e2e holds the end-to-end tests: contexts on a real Temporal server,
// with a scripted model. It has no code of its own.
package e2e
