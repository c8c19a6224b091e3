// Package chronicle is the root of a module that keeps conversations with
// language models as durable contexts on Temporal. It has no code of its own;
// docs/design.md follows an event through the packages, file by file.
package chronicle
