// Package clouds registers the stores s3://, gs:// and azblob:// of package blobs. Main packages
// import it for its side effect. Libraries do not: the three SDKs more than double the size and the
// link time of a binary.
//
//	import _ "github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/clouds"
package clouds

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
