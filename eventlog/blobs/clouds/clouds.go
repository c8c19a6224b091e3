// Package clouds registers the cloud stores of package blobs: s3://, gs:// and
// azblob://. Main packages import it for its side effect:
//
//	import _ "github.com/seed-9ed7edd4/chronicle/eventlog/blobs/clouds"
//
// Libraries do not import it, because the three SDKs more than double the size and the
// link time of a binary.
package clouds

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
