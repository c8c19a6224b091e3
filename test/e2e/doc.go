// Package e2e tests contexts end to end: on a real Temporal server with a scripted model.
//
//	make test P=./test/e2e  # on a dev server started by the tests
//	make test-long          # tests that take minutes
//	make e2e-postgres       # on the production topology; see deploy/local.sh
package e2e
