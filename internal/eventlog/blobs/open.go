package blobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
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

// OpenError is the error of [Open], about the URL of the store.
type OpenError struct {
	text string
	err  error
}

func (e *OpenError) Error() string { return e.text }
func (e *OpenError) Unwrap() error { return e.err }

// Open opens the store of a Temporal namespace at a URL. It creates a missing folder. For a bucket, it
// sends no request.
func Open(ctx context.Context, rawURL, namespace string) (*Store, error) {
	return openStore(ctx, rawURL, namespace, true)
}

// OpenExisting opens a store like [Open], but fails if its folder does not exist.
func OpenExisting(ctx context.Context, rawURL, namespace string) (*Store, error) {
	return openStore(ctx, rawURL, namespace, false)
}

func openStore(ctx context.Context, rawURL, namespace string, createsFolder bool) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The error of the parser may quote a password.
		return nil, &OpenError{"open blob store: malformed URL; " + wanted(), nil}
	}
	bucket, folder, err := open(ctx, u, createsFolder)
	if err != nil {
		place, _, _ := strings.Cut(rawURL, "?") // parameters may contain secrets
		return nil, &OpenError{fmt.Sprintf("open blob store %q: %s", event.Redact(place, maxPlace), redact(err)), err}
	}
	store := New(blob.PrefixedBucket(bucket, url.PathEscape(namespace)+"/"))
	if folder != "" {
		store.folder, store.root = folder, filepath.Join(folder, url.PathEscape(namespace))
	}
	return store, nil
}

func open(ctx context.Context, u *url.URL, createsFolder bool) (bucket *blob.Bucket, folder string, err error) {
	mux := blob.DefaultURLMux()
	switch {
	case u.Scheme == "":
		return nil, "", errors.New("the scheme is missing; " + wanted())
	case !mux.ValidBucketScheme(u.Scheme) && slices.Contains(cloudSchemes, u.Scheme):
		return nil, "", fmt.Errorf("this program was built without %s stores (build it with -tags clouds); %s", u.Scheme, wanted())
	case !mux.ValidBucketScheme(u.Scheme):
		return nil, "", fmt.Errorf("unknown scheme %q; %s", u.Scheme, wanted())
	case u.User != nil:
		return nil, "", errors.New("the URL contains a user name or password; " +
			"set credentials in the environment, see the documentation of the cloud")
	case u.Scheme == fileblob.Scheme:
		return openFolder(ctx, u, createsFolder)
	case u.Scheme != memblob.Scheme && u.Host == "":
		return nil, "", fmt.Errorf("the bucket is missing; want %s://bucket", u.Scheme)
	case strings.Trim(u.Path, "/") != "":
		return nil, "", fmt.Errorf("a bucket has no path; want the parameter prefix=%s/", strings.Trim(u.Path, "/"))
	}
	bucket, err = mux.OpenBucketURL(ctx, withS3Defaults(u))
	return bucket, "", err
}

// The AWS SDK warns on stderr about each object without a checksum that it can verify: those above
// 16 MiB, uploaded in parts, and those of some servers (https://github.com/aws/aws-sdk-go-v2/issues/3032).
// [Store.Get] verifies hashes itself. Remove this when the SDK no longer warns.
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

var cloudSchemes = []string{"azblob", "gs", "s3"} // of package clouds

func wanted() string {
	return "want file:///absolute/folder, file://./relative/folder, or a bucket like s3://bucket; the schemes of this program are " +
		strings.Join(blob.DefaultURLMux().BucketSchemes(), ", ")
}

var drive = regexp.MustCompile(`^/?[A-Za-z]:`)

// openFolder opens a folder as a bucket without metadata files. The URL may have the parameters of
// [fileblob.URLOpener].
func openFolder(ctx context.Context, u *url.URL, creates bool) (bucket *blob.Bucket, folder string, err error) {
	folder = u.Path
	if u.Host == "." || runtime.GOOS == "windows" {
		folder = strings.TrimPrefix(folder, "/")
	}
	var problem string
	switch {
	case u.Opaque != "" || u.Host != "" && u.Host != "." && u.Host != "localhost":
		problem = "no folder after file://"
	case u.Fragment != "":
		problem = "fragments are unsupported; write # as %23"
	case strings.Contains(folder, `\`):
		problem = `backslashes are unsupported; write \ as /`
	case runtime.GOOS != "windows" && drive.MatchString(folder):
		problem = "drive letters exist only on Windows"
	case path.Clean("/"+folder) == "/":
		problem = "the folder is missing"
	}
	if problem != "" {
		return nil, "", fmt.Errorf("%s; want file:///absolute/folder or file://./relative/folder", problem)
	}
	folder = filepath.Clean(filepath.FromSlash(folder))
	if _, err := os.Stat(folder); !creates && errors.Is(err, fs.ErrNotExist) {
		return nil, "", errors.New("the folder does not exist (check the URL; the first worker creates the folder)")
	}
	opener := fileblob.URLOpener{Options: fileblob.Options{
		CreateDir:   creates,
		DirFileMode: 0o700, // conversations are private
		NoTempDir:   true,  // temporary files must be on the same file system to be renamed
		Metadata:    fileblob.MetadataDontWrite,
	}}
	bucket, err = opener.OpenBucketURL(ctx, u)
	return bucket, folder, err
}

const (
	maxPlace = 200
	maxError = 1000
)

// parameters matches the query of a URL, which may contain signatures and keys.
var parameters = regexp.MustCompile(`([a-z][a-z0-9+.-]*:[^\s"?]*)\?[^\s"]*[^\s":]`)

func redact(err error) string {
	return event.Redact(parameters.ReplaceAllString(err.Error(), "${1}?…"), maxError)
}
