#!/bin/bash
# Starts a Ceph of one host without systemd: a monitor, a disk in memory, a gateway with the interface of S3.
# usage: ceph_up.sh FOLDER PORT; process ids are in FOLDER/run
set -eu
C=$1; P=$2
rm -rf $C; mkdir -p $C/{mon,osd,mgr,run,log,rgw}; FSID=$(cat /proc/sys/kernel/random/uuid)
cat > $C/ceph.conf <<CONF
[global]
fsid = $FSID
mon_host = [v2:127.0.0.1:3300,v1:127.0.0.1:6789]
mon_initial_members = a
public_network = 127.0.0.0/8
ms_bind_ipv6 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $C/run
admin_socket = $C/run/\$name.asok
pid_file = $C/run/\$name.pid
log_file = $C/log/\$name.log
mon_data = $C/mon/a
mgr_data = $C/mgr/x
osd_data = $C/osd/0
osd_journal = $C/osd/0/journal
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
osd_objectstore = memstore
memstore_device_bytes = 2147483648

mon_data_avail_crit = 1
mon_data_avail_warn = 1
mon_warn_on_insecure_global_id_reclaim_allowed = false
crush_location =
[client.rgw]
rgw_data = $C/rgw
rgw_frontends = beast endpoint=127.0.0.1:$P
rgw_thread_pool_size = 32
ms_mon_client_mode = crc
rgw_enable_ops_log = false
rgw_enable_usage_log = false
rgw_dynamic_resharding = false
rgw_gc_obj_min_wait = 5
rgw_gc_processor_period = 5
rgw_gc_processor_max_time = 5
rgw_gc_max_objs = 4
CONF
export CEPH_CONF=$C/ceph.conf
monmaptool --create --fsid $FSID --addv a '[v2:127.0.0.1:3300,v1:127.0.0.1:6789]' $C/monmap >/dev/null
mkdir -p $C/mon/a $C/mgr/x $C/osd/0
ceph-mon -c $CEPH_CONF --mkfs -i a --monmap $C/monmap
ceph-mon -c $CEPH_CONF -i a
U=$(cat /proc/sys/kernel/random/uuid); ceph -c $CEPH_CONF osd new $U >/dev/null
ceph-osd -c $CEPH_CONF -i 0 --mkfs --osd-uuid $U >/dev/null 2>&1
ceph-osd -c $CEPH_CONF -i 0
ceph -c $CEPH_CONF osd crush add osd.0 1.0 root=default host=$(hostname -s) >/dev/null 2>&1 || true
for i in $(seq 60); do ceph -c $CEPH_CONF osd stat 2>/dev/null | grep -q '1 up' && break; sleep .3; done
ceph -c $CEPH_CONF osd stat
timeout 60 radosgw-admin -c $CEPH_CONF --name client.rgw user create --uid=t --display-name=t --access-key=k --secret=quite-secret 2>/dev/null | grep -c access_key
radosgw -c $CEPH_CONF --name client.rgw
for i in $(seq 60); do python3 -c "import socket;socket.create_connection(('127.0.0.1',$P),1)" 2>/dev/null && break; sleep .3; done
