// Package pooledpb has the types of messagepb and userv1 again, with vtprotobuf's methods that take messages from pools and
// give them back. File proto/generate.go says how it is made.
package pooledpb
