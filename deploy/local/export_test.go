package main

var Run = run

var FreePorts = freePorts
