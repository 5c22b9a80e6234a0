// Package userservice is the descriptor of the user service, which both userservicegrpc and userserviceconnect need. The
// messages are in package userv1.
package userservice
