package interop;

import java.lang.reflect.Field;
import java.util.function.LongConsumer;

import org.apache.shardingsphere.elasticjob.api.ElasticJob;
import org.apache.shardingsphere.elasticjob.api.JobConfiguration;
import org.apache.shardingsphere.elasticjob.infra.env.IpUtils;
import org.apache.shardingsphere.elasticjob.infra.handler.sharding.JobInstance;
import org.apache.shardingsphere.elasticjob.infra.pojo.JobConfigurationPOJO;
import org.apache.shardingsphere.elasticjob.infra.yaml.YamlEngine;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.impl.OneOffJobBootstrap;
import org.apache.shardingsphere.elasticjob.lite.api.bootstrap.impl.ScheduleJobBootstrap;
import org.apache.shardingsphere.elasticjob.lite.internal.schedule.JobRegistry;
import org.apache.shardingsphere.elasticjob.lite.internal.schedule.JobScheduleController;
import org.apache.shardingsphere.elasticjob.lite.internal.snapshot.SnapshotService;
import org.apache.shardingsphere.elasticjob.reg.base.CoordinatorRegistryCenter;
import org.apache.shardingsphere.elasticjob.reg.zookeeper.ZookeeperConfiguration;
import org.apache.shardingsphere.elasticjob.reg.zookeeper.ZookeeperRegistryCenter;
import org.quartz.JobExecutionContext;
import org.quartz.Scheduler;
import org.quartz.SchedulerException;
import org.quartz.Trigger;
import org.quartz.listeners.TriggerListenerSupport;

/** What is named differently from release to release: packages that moved, and keys that were renamed. */
final class Release {

    private Release() {
    }

    /** Connects as an application does. */
    static CoordinatorRegistryCenter connect(String servers, String namespace, String digest, int sessionMillis) {
        ZookeeperConfiguration configuration = new ZookeeperConfiguration(servers, namespace);
        configuration.setSessionTimeoutMilliseconds(sessionMillis);
        configuration.setConnectionTimeoutMilliseconds(30_000);
        configuration.setMaxRetries(10);
        if (digest != null) {
            configuration.setDigest(digest);
        }
        CoordinatorRegistryCenter center = new ZookeeperRegistryCenter(configuration);
        center.init();
        return center;
    }

    /**
     * Makes this process believe that this is its address. Several processes on one machine are several hosts only
     * so.
     */
    static void pretendAddress(String ip) throws ReflectiveOperationException {
        Field cached = IpUtils.class.getDeclaredField("cachedIpAddress");
        cached.setAccessible(true);
        cached.set(null, ip);
    }

    /** The id under which this process is known. */
    static String instanceId() {
        return new JobInstance().getJobInstanceId();
    }

    /** Starts a job, with a schedule or waiting to be triggered. Its work is code, or the name of a type. */
    static void start(CoordinatorRegistryCenter center, Object work, JobConfiguration configuration) {
        boolean isType = work instanceof String;
        if (configuration.getCron() != null) {
            ScheduleJobBootstrap bootstrap = isType
                    ? new ScheduleJobBootstrap(center, (String) work, configuration)
                    : new ScheduleJobBootstrap(center, (ElasticJob) work, configuration);
            bootstrap.schedule();
        } else if (isType) {
            new OneOffJobBootstrap(center, (String) work, configuration);
        } else {
            new OneOffJobBootstrap(center, (ElasticJob) work, configuration);
        }
    }

    /** Starts a job with a schedule, and tells the time for which a round was scheduled before the round begins. */
    static void startObserved(CoordinatorRegistryCenter center, ElasticJob work, JobConfiguration configuration,
            LongConsumer nominalMillis) throws ReflectiveOperationException {
        ScheduleJobBootstrap bootstrap = new ScheduleJobBootstrap(center, work, configuration);
        Field field = JobScheduleController.class.getDeclaredField("scheduler");
        field.setAccessible(true);
        Scheduler scheduler = (Scheduler) field.get(
                JobRegistry.getInstance().getJobScheduleController(configuration.getJobName()));
        try {
            scheduler.getListenerManager().addTriggerListener(new TriggerListenerSupport() {

                @Override
                public String getName() {
                    return "nominal";
                }

                @Override
                public void triggerFired(Trigger trigger, JobExecutionContext context) {
                    nominalMillis.accept(context.getScheduledFireTime().getTime());
                }
            });
        } catch (SchedulerException error) {
            throw new IllegalStateException("the scheduler takes no listener", error);
        }
        bootstrap.schedule();
    }

    /** Opens the port that answers dumps. */
    static void listenForDumps(CoordinatorRegistryCenter center, int port) {
        new SnapshotService(center, port).listen();
    }

    /** The key that chooses the thread pool; 3.0.5 has another name for it. */
    static void pool(JobConfiguration.Builder builder, String type) {
        builder.jobExecutorServiceHandlerType(type);
    }

    /** A document as it is stored. */
    static String marshal(JobConfigurationPOJO document) {
        return YamlEngine.marshal(document);
    }
}
