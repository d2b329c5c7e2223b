//! Jobs of older generations.

use expect_test::expect;

use super::common::{Place, Store};
use super::{check, fleet, on_both, refuses};

on_both!(jobs_of_older_generations_are_imported, an_old_job_that_is_still_at_work_is_not_imported);

const V2: &str = r#"{"jobName":"stock","jobClass":"com.acme.StockSync","jobType":"DATAFLOW","cron":"0 0/20 6-22 * * ?","shardingTotalCount":2,"shardingItemParameters":"0\u003dlinz,1\u003dgraz","failover":true,"misfire":true,"streamingProcess":false,"monitorPort":9888,"jobProperties":{"job_exception_handler":"com.acme.MailOnError"}}"#;

fn old_fleet(place: Place) -> Store {
    let store = Store::at(place);
    store.write(
        "stock",
        &[
            ("/config", V2),
            ("/servers/10.0.0.1", ""),
            ("/servers/10.0.0.2", "DISABLED"),
            ("/sharding/0/instance", "10.0.0.1@-@4711"),
            ("/sharding/1/misfire", ""),
            ("/sharding/1/disabled", ""),
        ],
    );
    store.write(
        "bills",
        &[
            ("/config/jobClass", "com.acme.Bills"),
            ("/config/jobType", "SCRIPT"),
            ("/config/cron", "0 0 3 * * ?"),
            ("/config/shardingTotalCount", "2"),
            ("/config/scriptCommandLine", "/opt/bills.sh"),
            ("/servers/10.0.0.1/hostName", "linz"),
            ("/servers/10.0.0.1/sharding", "0,1"),
            ("/servers/10.0.0.2/paused", ""),
            ("/execution/1/misfire", ""),
            ("/execution/1/lastBeginTime", "1400000000000"),
            ("/offset/0", "4711"),
        ],
    );
    store
        .write("broken", &[("/config", r#"{"jobName":"broken","jobType":"SIMPLE","shardingTotalCount":1}"#)]);
    store
}

fn jobs_of_older_generations_are_imported(place: Place) {
    let store = old_fleet(place);
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB     STATUS   CRON  SHARDS  INSTANCES  DESCRIPTION
        bills   CRASHED  -     0       0          its configuration is that of 1.x: convert it with `elasticjob import`
        broken  CRASHED  -     0       0          its configuration is that of 2.x: convert it with `elasticjob import`
        stock   CRASHED  -     2       0          its configuration is that of 2.x: convert it with `elasticjob import`
    "#]],
    );
    refuses(
        &store,
        &["import", "--dry-run"],
        expect![[r#"
        /bills | SCRIPT
        /bills/config | cron: 0 0 3 * * ?
            description: ''
            disabled: false
            failover: false
            jobName: bills
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              script.command.line: /opt/bills.sh
            reconcileIntervalMinutes: 10
            shardingItemParameters: ''
            shardingTotalCount: 2
            staticSharding: false
        /bills/servers/10.0.0.1 | ENABLED
        /bills/servers/10.0.0.2 | DISABLED
        /bills/sharding/1/misfire |
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! error: job `broken`: its configuration cannot be converted: jobClass is missing: name the class that runs the job; correct it there and try again
        ! job bills of 1.x:
        !   warning: offset of shard 0 is `4711`: nothing keeps offsets here; hand it to the job's own code
        !   warning: 1 node(s) with times and counts of past runs are left out
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! dry run: nothing was written
        ! error: 1 job(s) cannot be imported
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["import", "stock"],
        expect![[r#"
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! error: this replaces these jobs where they are: nobody is here to confirm it; give --yes to do it without being asked
        exit 3
    "#]],
    );
    check(
        &store,
        &["import", "stock", "bills", "--yes"],
        expect![[r#"
            /bills | SCRIPT
            /bills/config | cron: 0 0 3 * * ?
                description: ''
                disabled: false
                failover: false
                jobName: bills
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  script.command.line: /opt/bills.sh
                reconcileIntervalMinutes: 10
                shardingItemParameters: ''
                shardingTotalCount: 2
                staticSharding: false
            /bills/servers/10.0.0.1 | ENABLED
            /bills/servers/10.0.0.2 | DISABLED
            /bills/sharding/1/misfire |
            /stock | com.acme.StockSync
            /stock/config | cron: 0 0/20 6-22 * * ?
                description: ''
                disabled: false
                failover: true
                jobName: stock
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  streaming.process: 'false'
                reconcileIntervalMinutes: 10
                shardingItemParameters: 0=linz,1=graz
                shardingTotalCount: 2
                staticSharding: false
            /stock/servers/10.0.0.1 | ENABLED
            /stock/servers/10.0.0.2 | DISABLED
            /stock/sharding/1/misfire |
            /stock/sharding/1/disabled |
            ! job bills of 1.x:
            !   warning: offset of shard 0 is `4711`: nothing keeps offsets here; hand it to the job's own code
            !   warning: 1 node(s) with times and counts of past runs are left out
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job stock of 2.x:
            !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
            !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job bills is imported
            ! job stock is imported
        "#]],
    );
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB     STATUS   CRON               SHARDS  INSTANCES  DESCRIPTION
        bills   CRASHED  0 0 3 * * ?        2       0          -
        broken  CRASHED  -                  0       0          its configuration is that of 2.x: convert it with `elasticjob import`
        stock   CRASHED  0 0/20 6-22 * * ?  2       0          -
    "#]],
    );
    expect![[r#"
        /bills | SCRIPT
        /bills/config | cron: 0 0 3 * * ?
        description: ''
        disabled: false
        failover: false
        jobName: bills
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        props:
          script.command.line: /opt/bills.sh
        reconcileIntervalMinutes: 10
        shardingItemParameters: ''
        shardingTotalCount: 2
        staticSharding: false

        /bills/servers | 
        /bills/servers/10.0.0.1 | ENABLED
        /bills/servers/10.0.0.2 | DISABLED
        /bills/sharding | 
        /bills/sharding/1 | 
        /bills/sharding/1/misfire | 
        /broken | 
        /broken/config | {"jobName":"broken","jobType":"SIMPLE","shardingTotalCount":1}
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
        description: ''
        disabled: false
        failover: true
        jobName: stock
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        props:
          streaming.process: 'false'
        reconcileIntervalMinutes: 10
        shardingItemParameters: 0=linz,1=graz
        shardingTotalCount: 2
        staticSharding: false

        /stock/servers | 
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding | 
        /stock/sharding/1 | 
        /stock/sharding/1/disabled | 
        /stock/sharding/1/misfire | "#]]
    .assert_eq(&store.everything().join("\n"));
    refuses(
        &store,
        &["import", "stock"],
        expect![[r#"
        ! error: there is no job `stock` of 1.x or 2.x
        exit 3
    "#]],
    );
    let target = fleet(place);
    let url = old_fleet(place);
    check(
        &target,
        &["import", "stock", "--from", &url.url(), "--yes"],
        expect![[r#"
            /stock | com.acme.StockSync
            /stock/config | cron: 0 0/20 6-22 * * ?
                description: ''
                disabled: false
                failover: true
                jobName: stock
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  streaming.process: 'false'
                reconcileIntervalMinutes: 10
                shardingItemParameters: 0=linz,1=graz
                shardingTotalCount: 2
                staticSharding: false
            /stock/servers/10.0.0.1 | ENABLED
            /stock/servers/10.0.0.2 | DISABLED
            /stock/sharding/1/misfire |
            /stock/sharding/1/disabled |
            ! job stock of 2.x:
            !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
            !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job stock is imported
        "#]],
    );
    refuses(
        &target,
        &["import", "stock", "--from", &url.url(), "--yes"],
        expect![[r#"
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! error: job `stock`: a job of that name is there already: remove it first, or import into another namespace
        exit 3
    "#]],
    );
}

fn an_old_job_that_is_still_at_work_is_not_imported(place: Place) {
    let store = old_fleet(place);
    store.write("bills", &[("/servers/10.0.0.1/status", "READY")]);
    refuses(
        &store,
        &["import", "bills", "--yes"],
        expect![[r#"
        ! error: job `bills`: 10.0.0.1 is still at work: stop every process of the old generation first, because two generations must not share a namespace
        ! error: 1 job(s) cannot be imported
        exit 3
    "#]],
    );
}
