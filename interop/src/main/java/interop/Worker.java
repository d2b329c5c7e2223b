package interop;

import java.util.Locale;
import java.util.concurrent.CountDownLatch;

import org.apache.shardingsphere.elasticjob.api.JobConfiguration;
import org.apache.shardingsphere.elasticjob.reg.base.CoordinatorRegistryCenter;

/**
 * A process of a Java fleet: joins with the jobs that its command line describes, and tells every event in a line.
 * It ends when it is asked to (SIGTERM), as an application does.
 */
public final class Worker {

    private Worker() {
    }

    public static void main(String[] words) throws ReflectiveOperationException, InterruptedException {
        Options options = Options.parse(words);
        String ip = options.get("ip", null);
        if (ip != null) {
            Release.pretendAddress(ip);
        }
        Events events = new Events(options.need("process"), Release.instanceId(), options.get("notes", null));
        events.born();
        Once.tell(events);
        CoordinatorRegistryCenter center = Release.connect(options.need("registry"), options.need("namespace"),
                options.get("digest", null), options.number("session-ms", 6000));
        int dumpPort = options.number("dump-port", -1);
        options.props();
        if (dumpPort >= 0) {
            Release.listenForDumps(center, dumpPort);
        }
        for (Options job : options.jobs()) {
            String name = job.need("job");
            try {
                start(center, events, name, job);
            } catch (RuntimeException error) {
                events.refused(name, error);
            }
        }
        events.ready();
        new CountDownLatch(1).await();
    }

    private static void start(CoordinatorRegistryCenter center, Events events, String name, Options job) {
        String kind = job.get("kind", "simple");
        long work = job.number("work-ms", 100);
        JobConfiguration.Builder builder = JobConfiguration.newBuilder(name, job.number("count", 1))
                .cron(job.get("cron", null))
                .failover(job.flag("failover", false))
                .misfire(job.flag("misfire", true))
                .monitorExecution(job.flag("monitor", true))
                .overwrite(job.flag("overwrite", false))
                .disabled(job.flag("disabled", false))
                .shardingItemParameters(job.get("item-parameters", ""))
                .jobParameter(job.get("parameter", ""))
                .jobShardingStrategyType(job.get("strategy", null))
                .jobErrorHandlerType(job.get("error-handler", null))
                .timeZone(job.get("time-zone", null));
        String pool = job.get("pool", null);
        if (pool != null) {
            Release.pool(builder, pool);
        }
        if (job.flag("once", false)) {
            builder.jobListenerTypes(Once.TYPE);
        }
        job.props().forEach(builder::setProperty);
        Object code = switch (kind) {
            case "simple" -> new Jobs.Simple(events, work);
            case "dataflow" -> new Jobs.Dataflow(events);
            case "failing" -> new Jobs.Failing();
            case "script", "http" -> kind.toUpperCase(Locale.ROOT);
            default -> throw new IllegalArgumentException(
                    "--kind is simple, dataflow, failing, script or http, not `" + kind + "`");
        };
        Release.start(center, code, builder.build());
    }
}
