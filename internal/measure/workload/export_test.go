package workload

// DrawnSizes are the sizes of the messages of a drawn payload, and the share of draws that were too large.
var DrawnSizes = drawnSizes
