package bound

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/explain/layers"
	"github.com/rpcbench/rpcbench/internal/testkit"
)

func TestNoBeginningIsTooLong(t *testing.T) {
	_, owners := layers.Parse(ownersText)
	for beginning := range owners {
		require.LessOrEqual(t, len(beginning), 100, "no longer one is looked up")
	}
}

func TestBadProfiles(t *testing.T) {
	for why, c := range map[string]struct{ stack, want string }{
		"of C++":             {" std::vector::push_back<main", "it is no profile of a Go program"},
		"without names":      {" <", "no function names: add them with go tool pprof"},
		"a name that steers": {" shop.\x1b[2Jtax<runtime.goexit", ""},
	} {
		s, err := Of("name", testkit.Profile(nil, c.stack))
		if c.want != "" {
			require.ErrorContains(t, err, c.want, why)
			require.ErrorContains(t, err, "name: ", why)
			continue
		}
		require.NoError(t, err, why)
		require.Equal(t, "shop.?[2Jtax", s.Parts[0].Function, why)
	}
}

// Stacks of a service are given as "function<caller<caller", whose part as "layer function", or "layer+ function" below
// an encoder.
func TestWhoseWork(t *testing.T) {
	const (
		grpc = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
		http = "<net/http.HandlerFunc.ServeHTTP<net/http.serverHandler.ServeHTTP<net/http.(*conn).serve"
		conn = "<connectrpc.com/connect.NewUnaryHandler[...].func1<connectrpc.com/connect.(*Handler).ServeHTTP" + http
		body = "<google.golang.org/protobuf/proto.Unmarshal<google.golang.org/grpc/encoding/proto.(*codecV2).Unmarshal"
	)
	for _, test := range []struct{ why, stack, want string }{
		{"a library's own work",
			"runtime.memmove<bufio.(*Writer).Write<google.golang.org/grpc/internal/transport.(*bufWriter).Write",
			"HTTP framing and headers google.golang.org/grpc/internal/transport.(*bufWriter).Write"},
		{"the collector helps a library", "runtime.mallocgc" + grpc, "allocation and GC runtime.mallocgc"},
		{"a handler", "runtime.memmove<shop.(*Server).Buy<shop.pb._Shop_Buy_Handler" + grpc,
			"your handlers shop.(*Server).Buy"},
		{"the deepest of a handler's functions", "shop.tax<shop.(*Server).Buy" + grpc, "your handlers shop.tax"},
		{"a handler of connect", "shop.tax" + conn, "your handlers shop.tax"},
		{"a middleware", "middleware.count" + http, "your handlers middleware.count"},
		{"generated code around a handler", "shop._Shop_Buy_Handler" + grpc, "RPC library shop._Shop_Buy_Handler"},
		{"interceptors, inlined", "shop.log<google.golang.org/grpc.NewServer.chainUnaryServerInterceptors.func1",
			"your handlers shop.log"},
		{"a handler's call", "google.golang.org/grpc.(*ClientConn).Invoke<shop.(*Server).Buy" + grpc,
			"RPC library google.golang.org/grpc.(*ClientConn).Invoke"},
		{"a library's benchmark is a service", "google.golang.org/grpc/benchmark.(*testServer).UnaryCall" + grpc,
			"your handlers google.golang.org/grpc/benchmark.(*testServer).UnaryCall"},

		{"a handler of net/rpc", "shop.tax<shop.(*Server).Buy<reflect.Value.call<net/rpc.(*service).call",
			"your handlers shop.tax"},
		{"a handler of connect v2", "shop.tax<shop.buy<connectrpc.com/connect/v2.(*Server).Call<" +
			"connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http, "your handlers shop.tax"},
		{"connect v2's own work", "runtime.memmove<connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http,
			"RPC library connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP"},
		{"connect v2's codec", "runtime.memmove<connectrpc.com/connect/v2/connectproto.(*BinaryCodec).UnmarshalRead<" +
			"connectrpc.com/connect/v2/connecthttp.(*handler).ServeHTTP" + http,
			"serialisation+ connectrpc.com/connect/v2/connectproto.(*BinaryCodec).UnmarshalRead"},
		{"a handler of connect-go", "shop.buy<github.com/bufbuild/connect-go.NewUnaryHandler[...].func1.1<shop.log<" +
			"github.com/bufbuild/connect-go.NewUnaryHandler[...].func2" + http, "your handlers shop.buy"},
		{"an interceptor of connect-go", "shop.log<github.com/bufbuild/connect-go.NewUnaryHandler[...].func2" + http,
			"your handlers shop.log"},
		{"a handler of grpc-go's own health service",
			"shop.(*Server).Check<google.golang.org/grpc/health/grpc_health_v1._Health_Check_Handler" + grpc,
			"your handlers shop.(*Server).Check"},
		{"grpc-go's implementation of it", "google.golang.org/grpc/health.(*Server).Check" +
			"<google.golang.org/grpc/health/grpc_health_v1._Health_Check_Handler" + grpc,
			"your handlers google.golang.org/grpc/health.(*Server).Check"},
		{"a store's service that somebody implements",
			"shop.(*Fake).Publish<cloud.google.com/go/pubsub/v2/apiv1/pubsubpb._Publisher_Publish_Handler" + grpc,
			"your handlers shop.(*Fake).Publish"},
		{"a handler of an http.Handler of fasthttp", "shop.buy<github.com/valyala/fasthttp.(*Server).serveConn",
			"your handlers shop.buy"},

		{"a codec", "runtime.memmove" + body + grpc, "serialisation+ google.golang.org/protobuf/proto.Unmarshal"},
		{"a codec that allocates", "runtime.mallocgc" + body + grpc, "allocation and GC+ runtime.mallocgc"},
		{"generated code below a codec", "shop.skip<shop.(*Buy).Unmarshal" + body + grpc,
			"serialisation+ shop.(*Buy).Unmarshal"},
		{"a message's own method below an encoder", "shop.Price.text<shop.Price.String<encoding/json.Marshal" + http,
			"serialisation+ encoding/json.Marshal"},
		{"a handler of HTTP encodes its reply", "encoding/json.Marshal<shop.buy" + http,
			"serialisation+ encoding/json.Marshal"},
		{"a handler of gRPC encodes for itself", "encoding/json.Marshal<shop.(*Server).Buy" + grpc,
			"your handlers+ shop.(*Server).Buy"},
		{"a handler of connect encodes for itself", "encoding/json.Marshal<shop.buy" + conn, "your handlers+ shop.buy"},
		{"a handler of twirp encodes for itself",
			"encoding/json.Marshal<shop.(*Server).Buy<shop.pb.(*shopServer).serveBuyProtobuf.func2" + http,
			"your handlers+ shop.(*Server).Buy"},
		{"twirp's generated code decodes",
			"google.golang.org/protobuf/proto.Unmarshal<shop.pb.(*shopServer).serveBuyProtobuf" + http,
			"serialisation+ google.golang.org/protobuf/proto.Unmarshal"},
		{"thrift's generated code decodes", "runtime.memmove<github.com/apache/thrift/lib/go/thrift.(*TBinaryProtocol)." +
			"ReadString<shop.(*Buy).Read<shop.(*buyProcessor).Process<github.com/apache/thrift/lib/go/thrift." +
			"(*TSimpleServer).processRequests",
			"serialisation+ github.com/apache/thrift/lib/go/thrift.(*TBinaryProtocol).ReadString"},
		{"a handler of thrift encodes for itself", "encoding/json.Marshal<shop.buy<shop.(*buyProcessor).Process<" +
			"github.com/apache/thrift/lib/go/thrift.(*TSimpleServer).processRequests", "your handlers+ shop.buy"},
		{"Kitex's generated code decodes", "runtime.memmove<shop.(*Buy).FastReadField1<shop.(*Buy).FastRead<" +
			"github.com/cloudwego/kitex/pkg/remote/codec/thrift.thriftCodec.Unmarshal<" +
			"github.com/cloudwego/kitex/pkg/remote/trans.(*svrTransHandler).Read",
			"serialisation+ shop.(*Buy).FastRead"},
		{"a gateway finds its marshaler", "github.com/grpc-ecosystem/grpc-gateway/v2/runtime.MarshalerForRequest<shop.pb.x<" +
			"github.com/grpc-ecosystem/grpc-gateway/v2/runtime.(*ServeMux).ServeHTTP" + http,
			"RPC library github.com/grpc-ecosystem/grpc-gateway/v2/runtime.MarshalerForRequest"},
		{"a job encodes", "runtime.mallocgc<encoding/json.Marshal<shop.nightly", "everything else+ shop.nightly"},
		{"a handler parses an ID", "github.com/google/uuid.xtob<github.com/google/uuid.(*UUID).UnmarshalText<shop.buy" + http,
			"your handlers github.com/google/uuid.xtob"},
		{"a handler writes an ID", "encoding/hex.Encode<github.com/google/uuid.encodeHex<github.com/google/uuid.UUID." +
			"MarshalText<shop.buy" + http, "your handlers github.com/google/uuid.encodeHex"},
		{"a handler parses an ID of Go 1.27's uuid", "uuid.Parse<uuid.(*UUID).UnmarshalText<shop.buy" + http,
			"your handlers shop.buy"},
		{"a handler parses a time", "time.parseStrictRFC3339<time.(*Time).UnmarshalText<shop.buy" + http,
			"your handlers shop.buy"},
		{"a handler of gRPC parses a time", "time.(*Time).UnmarshalText<shop.(*Server).Buy" + grpc,
			"your handlers shop.(*Server).Buy"},
		{"a handler writes a key for a cache", "time.Time.MarshalBinary<shop.Price.MarshalBinary<shop.buy" + http,
			"your handlers shop.Price.MarshalBinary"},
		{"a handler checks a token", "encoding/base64.(*Encoding).Decode<jwt.Parse<shop.auth" + http,
			"your handlers jwt.Parse"},
		{"a handler reads a certificate", "encoding/asn1.parseField<crypto/x509.MarshalPKIXPublicKey<shop.auth" + http,
			"your handlers shop.auth"},
		{"a handler logs", "go.uber.org/zap/zapcore.addField<shop.Order.MarshalLogObject<shop.buy" + http,
			"your handlers go.uber.org/zap/zapcore.addField"},
		{"an encoder writes an ID", "encoding/hex.Encode<github.com/google/uuid.UUID.MarshalText<encoding/json." +
			"marshalerEncoder<encoding/json.(*Encoder).Encode<shop.buy" + http, "serialisation+ encoding/hex.Encode"},
		{"an encoder writes bytes", "encoding/base64.(*Encoding).Encode<encoding/json.encodeByteSlice<shop.buy" + http,
			"serialisation+ encoding/base64.(*Encoding).Encode"},
		{"an encoder writes a time for gRPC", "time.Time.MarshalText<encoding/json.Marshal<shop.(*Server).Buy" + grpc,
			"your handlers+ shop.(*Server).Buy"},
		{"a handler writes for its database", "go.mongodb.org/mongo-driver/v2/bson.Marshal<shop.buy" + http,
			"other sockets go.mongodb.org/mongo-driver/v2/bson.Marshal"},
		{"a handler of ssh", "golang.org/x/crypto/ssh.Marshal<shop.buy" + http, "your handlers shop.buy"},
		{"an encoder alone", "encoding/json.Marshal", "everything else+ encoding/json.Marshal"},
		{"an encoder reads from a socket",
			"syscall.read<net.(*conn).Read<net/http.(*body).Read<encoding/json.(*Decoder).Decode<shop.buy" + http,
			"networking (syscalls) syscall.read"},
		{"an encoder writes to a middleware", "zip.deflate<zip.(*Writer).Write<encoding/json.(*Encoder).Encode<shop.buy" +
			http, "your handlers zip.deflate"},

		{"a database's socket",
			"syscall.read<net.(*conn).Read<github.com/jackc/pgx/v5/pgconn.(*PgConn).Exec<shop.(*Server).Buy" + grpc,
			"other sockets github.com/jackc/pgx/v5/pgconn.(*PgConn).Exec"},
		{"an unknown driver", "syscall.read<net.(*conn).Read<driver.exec<database/sql.(*DB).QueryContext<shop.job",
			"other sockets database/sql.(*DB).QueryContext"},
		{"a queue's socket", "github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs",
			"other sockets github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs"},
		{"a library whose package has a dot",
			"syscall.write<github.com/nats-io/nats%2ego.(*Conn).Publish<shop.(*Server).Buy" + grpc,
			"other sockets github.com/nats-io/nats.go.(*Conn).Publish"},
		{"a store behind HTTP", "syscall.write<net.(*conn).Write<net/http.(*Client).Do<" +
			"github.com/aws/aws-sdk-go-v2/service/s3.(*Client).PutObject<shop.job",
			"other sockets github.com/aws/aws-sdk-go-v2/service/s3.(*Client).PutObject"},

		{"a connection of somebody's under a library",
			"syscall.read<net.(*conn).Read<mux.(*Conn).Read<google.golang.org/grpc/internal/transport.readFrame",
			"networking (syscalls) syscall.read"},
		{"somebody's code in a place that no rule knows",
			"runtime.mallocgc<stats.count<google.golang.org/grpc/internal/transport.readFrame", "other stats.count"},

		{"the scheduler", "runtime.futex<runtime.findRunnable<runtime.mcall", "scheduler and collector runtime.futex"},
		{"the scheduler, with the end of a goroutine", "runtime.futex<runtime.mcall<runtime.goexit",
			"scheduler and collector runtime.futex"},
		{"the collector", "internal/runtime/gc/scan.ScanSpanPacked<runtime.gcDrain<runtime.gcBgMarkWorker<runtime.goexit",
			"scheduler and collector internal/runtime/gc/scan.ScanSpanPacked"},
		{"a stack that begins in a package of the runtime", "internal/runtime/syscall/linux.Syscall6",
			"scheduler and collector internal/runtime/syscall/linux.Syscall6"},
		{"the collector empties pools", "sync.poolCleanup<runtime.clearpools<runtime.gcStart<runtime.mallocgc",
			"scheduler and collector sync.poolCleanup"},
		{"a timer", "time.sendTime<runtime.(*timer).unlockAndRun<runtime.findRunnable<runtime.mcall",
			"scheduler and collector time.sendTime"},
		{"a closure of the runtime, as Go 1.27 names it", "runtime.ready<_.goready.func1",
			"scheduler and collector runtime.ready"},
		{"assembly and C alone", "gogo", "scheduler and collector gogo"},
		{"C and the runtime", "runtime.futex<runtime.mstart<start_thread", "scheduler and collector runtime.futex"},
		{"goroutines of a hash, which a handler waits for",
			"golang.org/x/crypto/argon2.blamkaSSE4<golang.org/x/crypto/argon2.processBlocks.func1<runtime.goexit",
			"everything else golang.org/x/crypto/argon2.processBlocks.func1"},
		{"of a compressor", "runtime.memmove<github.com/klauspost/compress/zstd.(*Encoder).nextBlock.func1.2",
			"everything else github.com/klauspost/compress/zstd.(*Encoder).nextBlock.func1.2"},
		{"of the standard library", "runtime.futex<os/signal.signal_recv<os/signal.loop", "everything else os/signal.loop"},
		{"of an encoder", "runtime.mallocgc<encoding/xml.(*Decoder).Token<golang.org/x/sync/errgroup.(*Group).Go.func1",
			"everything else+ runtime.mallocgc"},
		{"of a library that calls the service", "shop.load<golang.org/x/sync/errgroup.(*Group).Go.func1<runtime.goexit",
			"everything else shop.load"},
		{"C", "ZSTD_compress<runtime.cgocall<zstd.Compress<shop.job", "everything else zstd.Compress"},
		{"a job", "runtime.mallocgc<sort.Slice<shop.nightly[go.shape.int]", "everything else shop.nightly"},
		{"the profiler", "runtime/pprof.profileWriter", "everything else runtime/pprof.profileWriter"},
	} {
		s, err := Of("", testkit.Profile(nil, " "+test.stack, " runtime.mcall"))
		require.NoError(t, err)
		got := s.Parts[0].Layer
		if s.Parts[0].Side == Encoding {
			got += "+"
		}
		require.Equal(t, test.want, got+" "+s.Parts[0].Function, "%s: %s", test.why, test.stack)
	}
}

// Each client of a store is known by a function that its releases have, and what it sends is no RPC's.
func TestClientsOfStores(t *testing.T) {
	for function := range strings.FieldsSeq(`
database/sql.(*Rows).Next github.com/lib/pq.(*conn).query github.com/go-sql-driver/mysql.(*mysqlConn).readPacket
github.com/jackc/pgx/v5.(*Conn).Query github.com/microsoft/go-mssqldb.(*Stmt).sendQuery
github.com/mattn/go-sqlite3.(*SQLiteStmt).exec modernc.org/sqlite.(*conn).step
github.com/ClickHouse/clickhouse-go/v2.(*connect).query github.com/gocql/gocql.(*Conn).exec
go.mongodb.org/mongo-driver/mongo.(*Collection).Find go.mongodb.org/mongo-driver/v2/x/mongo/driver.Operation.Execute
gorm.io/gorm.(*processor).Execute github.com/redis/go-redis/v9.(*baseClient).process
github.com/go-redis/redis/v8.(*baseClient).process github.com/gomodule/redigo/redis.(*conn).Do
github.com/valkey-io/valkey-go.(*pipe).Do github.com/bradfitz/gomemcache/memcache.(*Client).Get
github.com/IBM/sarama.(*Broker).send github.com/Shopify/sarama.(*Broker).send github.com/segmentio/kafka-go.(*Conn).do
github.com/twmb/franz-go/pkg/kgo.(*broker).handleReqs github.com/confluentinc/confluent-kafka-go/v2/kafka.(*handle).poll
github.com/nats-io/nats.go.(*Conn).publish github.com/rabbitmq/amqp091-go.(*Channel).send
github.com/streadway/amqp.(*Channel).send github.com/apache/pulsar-client-go/pulsar.(*producer).Send
github.com/eclipse/paho.mqtt.golang.(*client).Publish github.com/aws/aws-sdk-go/aws/request.(*Request).Send
cloud.google.com/go/storage.(*Writer).Write github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime.Pipeline.Do
github.com/minio/minio-go/v7.(*Client).do github.com/elastic/elastic-transport-go/v8/elastictransport.(*Client).Perform
github.com/opensearch-project/opensearch-go.(*Client).Perform github.com/olivere/elastic/v7.(*Client).PerformRequest
github.com/jackc/pgconn.(*PgConn).Exec github.com/jackc/puddle/v2.(*Pool[...]).Acquire gorm.io/driver/postgres.Open
github.com/ClickHouse/ch-go.(*Client).Do github.com/scylladb/gocqlx/v3.(*Queryx).Exec
github.com/redis/rueidis.(*pipe).Do
github.com/valkey-io/valkey-glide/go/v2.(*Client).Get github.com/aws/smithy-go/transport/http.ClientHandler.Handle
github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue.MarshalMap github.com/lib/pq/scram.(*Client).Step
github.com/elastic/go-docappender/v2.(*Appender).flush github.com/elastic/go-elasticsearch/v8/esutil.(*worker).flush
cloud.google.com/go/spanner.(*Client).Single cloud.google.com/go/secretmanager/apiv1.(*Client).AccessSecretVersion
cloud.google.com/go/pubsub/v2.(*Publisher).Publish github.com/opensearch-project/opensearch-go/v4/opensearchapi.Do
github.com/go-ldap/ldap/v3.(*Conn).Search net/smtp.(*Client).Data`) {
		const serve = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
		s, err := Of("", testkit.Profile(nil, " syscall.write<net.(*conn).Write<"+function+"<shop.(*Server).Buy"+serve,
			" runtime.mcall"))
		require.NoError(t, err)
		require.Equal(t, "other sockets", s.Parts[0].Layer, function)
		require.Equal(t, strings.ReplaceAll(function, "[...]", ""), s.Parts[0].Function)
	}
}

// A service of somebody who also has clients of stores, or helpers, is a service like any other.
func TestServicesOfVendors(t *testing.T) {
	const http = "<net/http.HandlerFunc.ServeHTTP<net/http.(*conn).serve"
	for module := range strings.FieldsSeq(`
example.com/mysvc github.com/elastic/mysvc github.com/elastic/apm-server github.com/aws/mysvc github.com/redis/mysvc
github.com/ClickHouse/mysvc github.com/scylladb/mysvc github.com/valkey-io/mysvc github.com/jackc/mysvc
github.com/opensearch-project/mysvc cloud.google.com/go/mysvc gorm.io/mysvc github.com/go-ldap/mysvc
github.com/minio/minio github.com/nats-io/nats-server/v2 github.com/segmentio/kafka-gopher github.com/gocql/gocqlsvc
go.mongodb.org/mysvc github.com/Azure/mysvc github.com/apache/mysvc github.com/quic-go/mysvc
github.com/valyala/fasthttpsvc github.com/cloudwego/netpollsvc github.com/cloudwego/mysvc golang.org/x/build
golang.org/x/pkgsite`) {
		for sample, want := range map[string]string{
			"runtime.memmove<" + module + "/shop.tax<" + module + "/shop.Buy" + http: Handlers,
			"encoding/json.(*Encoder).Encode<" + module + "/shop.Buy" + http:         "serialisation",
			"runtime.memmove<" + module + "/shop.nightly":                            "everything else",
		} {
			s, err := Of("", testkit.Profile(nil, " "+sample, " runtime.mcall"))
			require.NoError(t, err)
			require.Equal(t, want, s.Parts[0].Layer, sample)
		}
	}
}

// A function's file tells whether it is of the main module, whatever owners.txt says of its name.
func TestFilesTell(t *testing.T) {
	const (
		gopath = "/go/pkg/mod/"
		goroot = "/usr/local/go/src/"
		taxes  = "github.com/redis/go-redis/v9/shop.tax"
	)
	for _, c := range []struct{ why, goroot, function, file, want string }{
		{"no file", "", taxes, "", "other sockets"},
		{"in a clone", goroot, taxes, "/home/ann/go-redis/shop/tax.go", Handlers},
		{"below GOPATH", goroot, taxes, "/go/src/github.com/redis/go-redis/shop/tax.go", Handlers},
		{"with a Go that a go.mod chose", gopath + "golang.org/toolchain@v0.0.1-go1.27.4.linux-amd64/src/", taxes,
			"/home/ann/go-redis/shop/tax.go", Handlers},
		{"on Windows", "C:/Program Files/Go/src/", taxes, "C:/Users/ann/go-redis/shop/tax.go", Handlers},
		{"with -trimpath", "", taxes, "github.com/redis/go-redis/v9/shop/tax.go", Handlers},
		{"a library", goroot, taxes, gopath + "github.com/redis/go-redis/v9@v9.7.0/shop/tax.go", "other sockets"},
		{"a library with -trimpath", "", taxes, "github.com/redis/go-redis/v9@v9.7.0/shop/tax.go", "other sockets"},
		{"a library at a commit", "", taxes, "github.com/redis/go-redis/v9@v9.0.0-20260101000000-0123456789ab/shop/tax.go",
			"other sockets"},
		{"a copy of a library", goroot, taxes, "/home/ann/shop/vendor/github.com/redis/go-redis/v9/shop/tax.go",
			"other sockets"},
		{"a library, built by Bazel", "GOROOT/src/", taxes, "external/com_github_redis_go_redis_v9/shop/tax.go",
			"other sockets"},
		{"code that cgo makes of a library", goroot, "github.com/mattn/go-sqlite3._Cfunc_sqlite3_step", "_cgo_gotypes.go",
			"other sockets"},
		{"of whom alone a file is known", "none", taxes, "/home/ann/go-redis/shop/tax.go", Handlers},
		{"a library, of which alone a file is known", "none", taxes, gopath + "github.com/redis/go-redis/v9@v9.7.0/x.go",
			"other sockets"},
		{"a package of Go's, of which alone a file is known", "none", "image/draw.draw",
			"/usr/local/go/src/image/draw/draw.go", "HTTP framing and headers"},
		{"a helper's name", goroot, "golang.org/x/text/shop.tax", "/home/ann/text/shop/tax.go", Handlers},
		{"a helper", goroot, "golang.org/x/text/shop.tax", gopath + "golang.org/x/text@v0.30.0/shop/tax.go",
			"HTTP framing and headers"},
		{"an RPC library's name", goroot, "google.golang.org/grpc/internal/shop.tax", "/home/ann/grpc-go/shop/tax.go",
			Handlers},
		{"a name like those of Go's packages, with -trimpath", "", "image/shop.tax", "image/shop/tax.go",
			"HTTP framing and headers"},
		{"a message's method", goroot, "github.com/redis/go-redis/v9/shop.(*Buy).MarshalJSON", "/home/ann/shop/buy.go",
			"serialisation"},
	} {
		p := testkit.Profile(nil, " runtime.memmove<"+c.function+"<net/http.HandlerFunc.ServeHTTP<net/http.(*conn).serve",
			" runtime.mcall")
		if c.file != "" {
			for _, f := range p.Function {
				if c.goroot != "none" {
					f.Filename = c.goroot + packageOf(f.Name) + "/x.go"
				}
			}
			p.Function[1].Filename = c.file
		}
		s, err := Of("", p)
		require.NoError(t, err)
		require.Equal(t, c.want, s.Parts[0].Layer, c.why)
	}
}

// Files tell nothing where an RPC library lies beside the service, nor of a package with files in both places.
func TestFilesThatTellNothing(t *testing.T) {
	const client = "github.com/redis/go-redis/v9.(*Client).Process"
	for why, files := range map[string]map[string]string{
		"everything is in one folder": {"google.golang.org/grpc": "/src/grpc/server.go",
			"github.com/redis/go-redis/v9": "/src/redis/redis.go", "shop": "/src/shop/shop.go"},
		"a //line of a generator": {"google.golang.org/grpc": "/go/pkg/mod/google.golang.org/grpc@v1.85.0/server.go",
			client: "/home/bob/redis.rl", "github.com/redis/go-redis/v9": "/go/pkg/mod/github.com/redis/go-redis/v9@v9.7.0/x.go",
			"shop": "/src/shop/shop.go"},
	} {
		const handler = "<shop.(*Server).Buy<google.golang.org/grpc.(*Server).processUnaryRPC"
		p := testkit.Profile(nil, " "+client+handler, " github.com/redis/go-redis/v9.(*baseClient).process"+handler,
			" runtime.mcall")
		for _, f := range p.Function {
			f.Filename = cmp.Or(files[f.Name], files[packageOf(f.Name)], "/usr/local/go/src/"+packageOf(f.Name)+"/x.go")
		}
		s, err := Of("", p)
		require.NoError(t, err)
		require.Equal(t, "other sockets", s.Parts[0].Layer, why)
		require.Equal(t, "other sockets", s.Parts[1].Layer, why)
	}
}

// The scheduler's and the collector's stacks begin in the runtime, in profiles of both releases of Go.
func TestNobodysBeginsInTheRuntime(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.pprof")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 5)
	for _, file := range files {
		p, err := layers.ReadFile(file)
		require.NoError(t, err)
		layers.Legible(p)
		of, _ := owned(p)
		nobodys := 0
		for _, sample := range p.Sample {
			if of(sample).Layer != Nobodys {
				continue
			}
			nobodys++
			begins := new(profile.Function) // none of a stack of the kernel's, or of C
			for _, location := range sample.Location {
				for _, line := range location.Line {
					begins = line.Function
				}
			}
			require.True(t, strings.HasPrefix(begins.Name, "runtime.") || !strings.Contains(begins.Name, ".") ||
				strings.Contains(begins.Filename, "/src/runtime/"), "%s: %s", file, begins.Name)
		}
		require.Positive(t, nobodys, file)
	}
}

// Methods that generators give to messages are encoders, whoever calls them.
func TestMethodsOfMessagesEncode(t *testing.T) {
	const serve = "<google.golang.org/grpc.(*Server).processUnaryRPC<google.golang.org/grpc.(*Server).handleStream"
	for _, name := range []string{"Marshal", "Unmarshal", "MarshalJSON", "MarshalVT", "UnmarshalVT", "SizeVT",
		"MarshalTo", "MarshalToSizedBuffer", "MarshalVTStrict", "UnmarshalVTUnsafe", "MarshalJSONPB", "MarshalJSONTo",
		"UnmarshalJSONFrom", "MarshalEasyJSON", "UnmarshalJSONObject", "MarshalXML", "UnmarshalCBOR", "MarshalAppend",
		"MarshalMsgpack", "MarshalProto3", "UnmarshalFromString",
		"MarshalToSizedBufferVT", "MarshalMsg", "UnmarshalMsg", "EncodeMsg", "DecodeMsg", "Msgsize", "FastRead", "FastWrite",
		"FastWriteNocopy", "BLength"} {
		s, err := Of("", testkit.Profile(nil, " shop.(*Buy)."+name+serve, " runtime.mcall"))
		require.NoError(t, err)
		require.Equal(t, "serialisation", s.Parts[0].Layer, name)
	}
	for _, name := range []string{"Marshaler", "MarshalText", "UnmarshalText", "MarshalBinary", "UnmarshalBinary",
		"AppendText", "MarshalLogObject", "MarshalZerologObject", "UnmarshalParam", "UnmarshalFlag", "MarshalPrivateKey",
		"MarshalToken", "UnmarshalProtocol"} {
		s, err := Of("", testkit.Profile(nil, " shop.(*Buy)."+name+serve, " runtime.mcall"))
		require.NoError(t, err)
		require.Equal(t, "your handlers", s.Parts[0].Layer, name)
	}
}

// Of a library that nobody has seen call a handler, the profile says so, and the samples are RPCs.
func TestUnseenHandlers(t *testing.T) {
	const serve = "/lib/go/thrift.(*TSimpleServer).Serve"
	s, err := Of("", testkit.Profile(nil, " shop.tax<git.apache.org/thrift.git"+serve, " runtime.mcall"))
	require.NoError(t, err)
	require.Equal(t, "git.apache.org/thrift.git/lib/go/thrift", s.Unseen)
	require.Equal(t, "shop.tax", s.Parts[0].Function)
	require.True(t, InRPCs(s.Parts[0]))
	s, err = Of("", testkit.Profile(nil, " shop.tax<github.com/apache/thrift"+serve, " runtime.mcall"))
	require.NoError(t, err)
	require.Empty(t, s.Unseen)
}

// Profiles of servers from elsewhere are in testdata/services. docs/service.md says how they were made.
func TestRulesKnowServices(t *testing.T) {
	files, err := filepath.Glob("testdata/services/*.pprof")
	require.NoError(t, err)
	require.Len(t, files, 3)
	text, err := os.ReadFile("../layers/rules.txt")
	require.NoError(t, err)
	rules := string(text) + ownersText
	for _, file := range files {
		p, err := layers.ReadFile(file)
		require.NoError(t, err)
		s, err := Of(file, p)
		require.NoError(t, err)
		rpcs, _ := s.Parts.Sum(InRPCs)
		unknown, _ := s.Parts.Sum(layers.Within(layers.Other, ""))
		require.Greater(t, rpcs, int64(500), file)
		require.LessOrEqual(t, float64(unknown), 0.05*float64(rpcs), "what no rule knows of the RPCs of %s: %v", file,
			s.Parts)
		if service := strings.TrimSuffix(filepath.Base(file), ".pprof"); service != "grpc-go" {
			require.NotContains(t, rules, service, "a rule that is for this service alone")
		}
	}
	require.NotContains(t, rules, "google.golang.org/grpc/benchmark")
}
