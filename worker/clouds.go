//go:build clouds

package main

import _ "github.com/seed-9ed7edd4/chronicle/internal/eventlog/blobs/clouds"
