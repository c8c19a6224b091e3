//go:build clouds

package e2e

func init() { buildTags = "clouds" }
