// Package version has the version of the release.
package version

import "runtime/debug"

// Version is the version of this release. Between releases, it is that of the next one with the
// suffix -dev.
const Version = "0.2.0-dev"

// Build returns Version and the commit that the program was built from, like
// "0.1.0 (0123456789ab)", or "0.1.0 (0123456789ab, modified)" if the checkout had changes. The commit
// is missing if the go command did not see a repository.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Version
	}
	return describe(info.Settings)
}

func describe(settings []debug.BuildSetting) string {
	values := map[string]string{}
	for _, s := range settings {
		values[s.Key] = s.Value
	}
	commit := values["vcs.revision"]
	if commit == "" {
		return Version
	}
	commit = commit[:min(len(commit), 12)]
	if values["vcs.modified"] == "true" {
		commit += ", modified"
	}
	return Version + " (" + commit + ")"
}
