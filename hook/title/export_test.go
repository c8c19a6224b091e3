package title

var Clean = clean
