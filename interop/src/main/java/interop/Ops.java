package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.TreeSet;

import org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobAPIFactory;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobConfigurationAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobOperateAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.JobStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ServerStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ShardingOperateAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.api.ShardingStatisticsAPI;
import org.apache.shardingsphere.elasticjob.lite.lifecycle.domain.JobBriefInfo;

/**
 * What Java's operators do, as a command line: {@code Ops servers namespace digest|- command words...}, or, with the
 * servers alone, one such command, from the namespace on, in each line of the input. A command is answered by its
 * lines, each after {@code "| "}, and then by {@code ok} or {@code error} and a reason.
 */
public final class Ops {

    private final JobOperateAPI operate;

    private final ShardingOperateAPI shards;

    private final JobConfigurationAPI configurations;

    private final JobStatisticsAPI jobStatistics;

    private final ServerStatisticsAPI serverStatistics;

    private final ShardingStatisticsAPI shardStatistics;

    private final PrintStream out;

    private Ops(String servers, String namespace, String digest, PrintStream out) {
        operate = JobAPIFactory.createJobOperateAPI(servers, namespace, digest);
        shards = JobAPIFactory.createShardingOperateAPI(servers, namespace, digest);
        configurations = JobAPIFactory.createJobConfigurationAPI(servers, namespace, digest);
        jobStatistics = JobAPIFactory.createJobStatisticsAPI(servers, namespace, digest);
        serverStatistics = JobAPIFactory.createServerStatisticsAPI(servers, namespace, digest);
        shardStatistics = JobAPIFactory.createShardingStatisticsAPI(servers, namespace, digest);
        this.out = out;
    }

    public static void main(String[] words) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        if (words.length > 1) {
            System.exit(answer(words[0], Arrays.copyOfRange(words, 1, words.length), out) ? 0 : 1);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            answer(words[0], line.split(" "), out);
        }
        System.exit(0);
    }

    private static boolean answer(String servers, String[] words, PrintStream out) {
        try {
            String digest = words[1].equals("-") ? null : words[1];
            Ops ops = new Ops(servers, words[0], digest, out); // Java keeps the connections, one for each namespace.
            ops.run(Arrays.copyOfRange(words, 2, words.length));
            out.println("ok");
            return true;
        } catch (IOException | RuntimeException error) {
            out.println("error " + error.toString().replace('\n', ' '));
            return false;
        }
    }

    private void run(String[] words) throws IOException {
        String first = words.length > 1 ? orNull(words[1]) : null;
        String second = words.length > 2 ? orNull(words[2]) : null;
        switch (words[0]) {
            case "trigger" -> operate.trigger(first);
            case "disable" -> operate.disable(first, second);
            case "enable" -> operate.enable(first, second);
            case "shutdown" -> operate.shutdown(first, second);
            case "remove" -> operate.remove(first, second);
            case "dump" -> say(operate.dump(first, second, Integer.parseInt(words[3])));
            case "disable-shard" -> shards.disable(first, second);
            case "enable-shard" -> shards.enable(first, second);
            case "config" -> say(Release.marshal(configurations.getJobConfiguration(first)));
            case "set" -> set(first, second, words[3]);
            case "remove-config" -> configurations.removeJobConfiguration(first);
            case "jobs" -> jobStatistics.getAllJobsBriefInfo().forEach(this::say);
            case "job" -> say(jobStatistics.getJobBriefInfo(first));
            case "jobs-on" -> jobStatistics.getJobsBriefInfo(first).forEach(
                    it -> say(it.getJobName() + " " + it.getStatus() + " instances=" + it.getInstanceCount()));
            case "servers" -> serverStatistics.getAllServersBriefInfo().forEach(
                    it -> say(it.getServerIp() + " instances=" + new TreeSet<>(it.getInstances())
                            + " jobs=" + new TreeSet<>(it.getJobNames()) + " disabled=" + it.getDisabledJobsNum()));
            case "shards" -> shardStatistics.getShardingInfo(first).forEach(
                    it -> say(it.getItem() + " " + it.getStatus() + " " + it.getServerIp() + " " + it.getInstanceId()
                            + " failover=" + it.isFailover()));
            default -> throw new IllegalArgumentException("unknown command `" + words[0] + "`");
        }
    }

    /** Reads a document, changes one setting and writes it back, as the console does. */
    private void set(String job, String key, String value) {
        JobConfigurationPOJO document = configurations.getJobConfiguration(job);
        switch (key) {
            case "cron" -> document.setCron(value.replace('_', ' '));
            case "shardingTotalCount" -> document.setShardingTotalCount(Integer.parseInt(value));
            case "jobParameter" -> document.setJobParameter(value);
            case "failover" -> document.setFailover(Boolean.parseBoolean(value));
            case "misfire" -> document.setMisfire(Boolean.parseBoolean(value));
            case "jobShardingStrategyType" -> document.setJobShardingStrategyType(value);
            default -> throw new IllegalArgumentException("unknown setting `" + key + "`");
        }
        configurations.updateJobConfiguration(document);
    }

    private void say(JobBriefInfo it) {
        say(it.getJobName() + " " + it.getStatus() + " instances=" + it.getInstanceCount()
                + " shards=" + it.getShardingTotalCount() + " cron=" + it.getCron());
    }

    private void say(String text) {
        text.lines().forEach(it -> out.println("| " + it));
    }

    private static String orNull(String word) {
        return word.equals("-") ? null : word;
    }
}
