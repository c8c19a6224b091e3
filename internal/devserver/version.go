package devserver

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
)

type Version struct {
	Major, Minor, Patch int
}

// MinVersion is the oldest supported server version.
var MinVersion = Version{Major: 1, Minor: 29}

var serverVersion = regexp.MustCompile(`\(Server (\d+)\.(\d+)\.(\d+)`)

// ParseVersion parses the output of `temporal --version`, like "temporal version 1.5.1 (Server
// 1.29.1, UI 2.42.1)". Builds from source have no version of the CLI.
func ParseVersion(output string) (Version, error) {
	match := serverVersion.FindStringSubmatch(output)
	if match == nil {
		return Version{}, fmt.Errorf(`no "(Server X.Y.Z" in %q`, output)
	}
	var numbers [3]int
	for i := range numbers {
		n, err := strconv.Atoi(match[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("server version in %q: %w", output, err)
		}
		numbers[i] = n
	}
	return Version{Major: numbers[0], Minor: numbers[1], Patch: numbers[2]}, nil
}

func (v Version) Fine() bool {
	if v.Major != MinVersion.Major {
		return false
	}
	return cmp.Or(cmp.Compare(v.Minor, MinVersion.Minor), cmp.Compare(v.Patch, MinVersion.Patch)) >= 0
}

func (v Version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}
