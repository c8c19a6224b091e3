package blobs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/seed-9ed7edd4/chronicle/event"
)

// Open opens the store of a Temporal namespace at a URL, see the package. A cloud
// is not asked yet whether it is there.
func Open(ctx context.Context, rawURL, namespace string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// Not even the error of the parser is repeated: it quotes what may be a
		// password.
		return nil, errors.New("blob store: that is no URL; " + wanted())
	}
	bucket, folder, err := open(ctx, u)
	if err != nil {
		// Behind the ? nothing is repeated, either.
		place, _, _ := strings.Cut(rawURL, "?")
		return nil, &storeError{fmt.Sprintf("blob store %q: %s", event.Redact(place, maxPlace), redact(err)), err}
	}
	store := New(blob.PrefixedBucket(bucket, url.PathEscape(namespace)+"/"))
	if folder != "" {
		store.folder, store.root = folder, filepath.Join(folder, url.PathEscape(namespace))
	}
	return store, nil
}

// open returns the bucket, and the folder that it is in, if it is in one.
func open(ctx context.Context, u *url.URL) (bucket *blob.Bucket, folder string, err error) {
	mux := blob.DefaultURLMux()
	switch {
	case u.Scheme == "":
		return nil, "", errors.New("the scheme is missing; " + wanted())
	case !mux.ValidBucketScheme(u.Scheme) && slices.Contains(cloudSchemes, u.Scheme):
		return nil, "", fmt.Errorf("this program was built without %s stores (build it with -tags clouds); %s", u.Scheme, wanted())
	case !mux.ValidBucketScheme(u.Scheme):
		return nil, "", fmt.Errorf("unknown scheme %q; %s", u.Scheme, wanted())
	case u.User != nil:
		return nil, "", errors.New("a user name or password does not belong into the URL; " +
			"credentials come from the environment, see the documentation of the cloud")
	case u.Scheme == fileblob.Scheme:
		return openFolder(ctx, u)
	case u.Scheme != memblob.Scheme && u.Host == "":
		return nil, "", fmt.Errorf("the bucket is missing; want %s://bucket", u.Scheme)
	case strings.Trim(u.Path, "/") != "":
		return nil, "", fmt.Errorf("a bucket has no path; want the parameter prefix=%s/", strings.Trim(u.Path, "/"))
	}
	bucket, err = mux.OpenBucketURL(ctx, withS3Defaults(u))
	return bucket, "", err
}

// withS3Defaults adds to a URL of S3 that the SDK validates responses only where a
// request asks for it. Else it writes a warning to stderr for each object that it
// cannot validate: those above 16 MB, which are uploaded in parts, and all of servers
// without its checksums. [Store.Get] validates what it reads by its hash.
func withS3Defaults(u *url.URL) *url.URL {
	const name = "response_checksum_validation"
	query := u.Query()
	if u.Scheme != "s3" || query.Has(name) {
		return u
	}
	query.Set(name, "when_required")
	changed := *u
	changed.RawQuery = query.Encode()
	return &changed
}

// cloudSchemes are those that package clouds registers.
var cloudSchemes = []string{"azblob", "gs", "s3"}

func wanted() string {
	return "want file:///absolute/folder, file://./relative/folder, or a bucket like s3://bucket; the schemes of this program are " +
		strings.Join(blob.DefaultURLMux().BucketSchemes(), ", ")
}

// drive is how a path of Windows begins.
var drive = regexp.MustCompile(`^/?[A-Za-z]:`)

// openFolder makes the folder, and keeps nothing there but the blobs: each is
// written to a file beside its place and then renamed. The parameters are those of
// fileblob.URLOpener, which refuses others; none of them turns that off.
func openFolder(ctx context.Context, u *url.URL) (bucket *blob.Bucket, folder string, err error) {
	folder = u.Path
	if u.Host == "." || runtime.GOOS == "windows" {
		folder = strings.TrimPrefix(folder, "/")
	}
	var problem string
	switch {
	case u.Opaque != "" || u.Host != "" && u.Host != "." && u.Host != "localhost":
		problem = "the folder does not begin behind file://"
	case u.Fragment != "":
		problem = "a folder has no fragment; write # as %23"
	case strings.Contains(folder, `\`):
		problem = `a \ is written as /`
	case runtime.GOOS != "windows" && drive.MatchString(folder):
		problem = "this machine has no drives"
	case path.Clean("/"+folder) == "/":
		problem = "there is no folder in it"
	}
	if problem != "" {
		return nil, "", fmt.Errorf("%s; want file:///absolute/folder or file://./relative/folder", problem)
	}
	folder = filepath.Clean(filepath.FromSlash(folder))
	opener := fileblob.URLOpener{Options: fileblob.Options{
		CreateDir:   true,
		DirFileMode: 0o700, // conversations are private
		NoTempDir:   true,  // a file can be renamed only within its disk
		Metadata:    fileblob.MetadataDontWrite,
	}}
	bucket, err = opener.OpenBucketURL(ctx, u)
	return bucket, folder, err
}

const (
	maxPlace = 200
	maxError = 1000
)

// parameters of a URL, where Azure has its signatures and a slip its keys.
var parameters = regexp.MustCompile(`([a-z][a-z0-9+.-]*:[^\s"?]*)\?[^\s"]*[^\s":]`)

// redact is the text of an error without what may be secret.
func redact(err error) string {
	return event.Redact(parameters.ReplaceAllString(err.Error(), "${1}?…"), maxError)
}
