// Package clouds registers the stores of package blobs in the cloud: s3://,
// gs:// and azblob://. Import it for its side effect, in a main package:
//
//	import _ "github.com/seed-9ed7edd4/chronicle/eventlog/blobs/clouds"
//
// The SDKs of three clouds more than double the size and the link time of a
// binary, so no library of Chronicle imports it.
package clouds

import (
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://
)
