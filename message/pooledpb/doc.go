// Package pooledpb has the types of messagepb and userv1 again, which vtprotobuf takes from pools: see package proto.
package pooledpb
