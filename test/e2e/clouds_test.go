//go:build clouds

package e2e

import _ "github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/clouds"

func init() { buildTags = "clouds" }
