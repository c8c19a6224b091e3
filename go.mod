module github.com/seed-9ed7edd4/chronicle

go 1.26.0
