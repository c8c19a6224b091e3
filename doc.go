// Package chronicle is the root of a module that keeps conversations with
// language models as durable contexts on Temporal. Its only code is the version;
// docs/architecture.md follows an event through the packages, file by file.
package chronicle
