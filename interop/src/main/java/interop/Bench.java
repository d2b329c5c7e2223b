package interop;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

import org.apache.shardingsphere.elasticjob.api.ElasticJob;
import org.apache.shardingsphere.elasticjob.api.JobConfiguration;
import org.apache.shardingsphere.elasticjob.api.ShardingContext;
import org.apache.shardingsphere.elasticjob.dataflow.job.DataflowJob;
import org.apache.shardingsphere.elasticjob.reg.base.CoordinatorRegistryCenter;
import org.apache.shardingsphere.elasticjob.simple.job.SimpleJob;

/** Many equal jobs in one process, for benchmarks. What it writes is what the Rust program `bench-worker` writes. */
public final class Bench {

    private static final int BATCH = 100;

    private static final long WRITE_EVERY_MILLIS = 50;

    private final PrintStream out;

    private Bench(PrintStream out) {
        this.out = out;
    }

    public static void main(String[] words) throws IOException, ReflectiveOperationException, InterruptedException {
        Options options = Options.parse(words);
        PrintStream file = new PrintStream(
                new BufferedOutputStream(new FileOutputStream(options.need("out")), 1 << 20), false,
                StandardCharsets.US_ASCII);
        new Bench(file).start(options);
        // Now and then, so that those who begin together do not wait for each other's writes.
        while (true) {
            Thread.sleep(WRITE_EVERY_MILLIS);
            file.flush();
        }
    }

    private void start(Options options) throws ReflectiveOperationException {
        CoordinatorRegistryCenter center = Release.connect(options.need("registry"), options.need("namespace"), null,
                options.number("session-ms", 10_000));
        List<String[]> specs = specs(options);
        long work = options.number("work-ms", 0);
        boolean dataflow = options.flag("dataflow", false);
        options.props();
        for (int job = 0; job < specs.size(); job++) {
            String[] spec = specs.get(job);
            JobConfiguration.Builder builder = JobConfiguration.newBuilder("job-" + job, Integer.parseInt(spec[0]))
                    .cron(spec[1]).monitorExecution(Boolean.parseBoolean(spec[2]))
                    .failover(Boolean.parseBoolean(spec[3])).misfire(false);
            if (dataflow) {
                builder.setProperty("streaming.process", "true");
            }
            Nominal nominal = new Nominal();
            ElasticJob code = dataflow ? new Rows() : new Simple(job, work, nominal);
            Release.startObserved(center, code, builder.build(), nominal::set);
        }
        print("ready " + micros());
    }

    /** Items, cron, monitoring and failover of each job: equal ones, or those of {@code --specs}. */
    private static List<String[]> specs(Options options) {
        int jobs = options.number("jobs", 1);
        String equal = String.join(":", options.get("items", "1"), options.need("cron"),
                String.valueOf(options.flag("monitor", true)), String.valueOf(options.flag("failover", false)));
        String different = options.get("specs", "");
        List<String> all = different.isEmpty()
                ? Collections.nCopies(jobs, equal) : Arrays.asList(different.split(";"));
        return all.stream().map(spec -> spec.split(":")).collect(Collectors.toList());
    }

    private static long micros() {
        return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
    }

    private synchronized void print(String line) {
        out.println(line);
    }

    /** The time for which the job's round was scheduled: Quartz knows it, and ElasticJob does not hand it on. */
    private static final class Nominal {

        private volatile long millis;

        private void set(long millis) {
            this.millis = millis;
        }
    }

    private final class Simple implements SimpleJob {

        private final int job;

        private final long workMillis;

        private final Nominal nominal;

        Simple(int job, long workMillis, Nominal nominal) {
            this.job = job;
            this.workMillis = workMillis;
            this.nominal = nominal;
        }

        @Override
        public void execute(ShardingContext context) {
            long start = micros();
            print("run " + job + " " + context.getShardingItem() + " " + nominal.millis * 1000 + " " + start);
            if (workMillis > 0) {
                try {
                    Thread.sleep(workMillis);
                } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /** Has always a batch of rows, at once, and does nothing with them but count. */
    private final class Rows implements DataflowJob<Integer> {

        private final List<Integer> batch = Collections.nCopies(BATCH, 1);

        private final AtomicLong rows = new AtomicLong();

        private final AtomicLong told = new AtomicLong();

        @Override
        public List<Integer> fetchData(ShardingContext context) {
            return List.copyOf(batch);
        }

        @Override
        public void processData(ShardingContext context, List<Integer> data) {
            long count = rows.addAndGet(data.size());
            long now = micros();
            long last = told.get();
            if (now - last > 200_000 && told.compareAndSet(last, now)) {
                print("rows " + count + " " + now);
            }
        }
    }
}
