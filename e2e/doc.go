// Package e2e holds the end-to-end tests: contexts on a real Temporal server,
// with a scripted model. It has no code of its own.
//
//	make test P=./e2e    # on a dev server that the tests start
//	make test-long       # the tests that take minutes
//	make e2e-s3          # with an S3 server as the blob store
//	make e2e-postgres    # on the production topology; see deploy/local
package e2e
