-- Inline projections: versions whose rows commit with the append. While a version is `live`, every append folds its events into the version's
-- table. While it is `building`, appends ignore it, and its processor folds the log as for any other version.
--
-- Needs: 0001_event_log, 0002_horizon, 0003_registry
-- Older processes: can run beside it
--
-- Advisory transaction locks, in the order in which they are taken. src/store/server/lock-keys.ts creates the keys.
-- 1. Gate: shared by every transaction that appends, from before it draws a position to its end. A version becomes live under the exclusive lock,
--    so no append is halfway through when it does.
-- 2. Version: shared by appends that fold into the version. Whoever gets it exclusively knows that no such append is running.
-- 3. Leave: shared by transactions that announce that a version is left. Others see it in refold.advisory_locks before the announcement commits.
-- 4. Rows: all rows of a version. Shared by appends that lock single rows, exclusive for appends that touch too many rows or unknown ones.
-- 5. Row: one row, exclusive. The append that gets it first draws the lower positions, so rows are folded in the order of the log.

create table refold.inline_versions (
  name text collate "C" not null,
  version integer not null,
  status text not null default 'building' check (status in ('building', 'live')),
  -- of the events that it reads
  families text[] not null,
  -- the key of its version lock
  lock_key bigint not null,
  -- when a writer that can't fold took it out of `live`; null if an operator did, or nobody
  passed_at timestamptz,
  primary key (name, version),
  foreign key (name, version) references refold.projections on delete cascade
);

-- Every append looks up the live versions, also when sequential scans are switched off. Without an index, the plan for the
-- single page would then have an enormous cost, and a server that compiles expensive statements (jit) would compile this one every time.
create index inline_versions_live on refold.inline_versions (lock_key) where status = 'live';

-- Counts how often versions became live; without a value if none ever did. A sequence, because old snapshots see its present value, too.
create sequence refold.inline_lives;

-- How a version leaves `live` without anybody waiting for a lock.
--
-- The transaction that takes it out announces that first: it shares the version's leave lock, draws from `inline_leaves`, and writes a departure.
-- Others see the lock and the sequence at once, and the departure after the commit. An append that folds reads the sequence when it enters, and
-- again when its positions are drawn. If it changed, the append begins again. So every folded event has a lower position than every event
-- that is left out. docs/architecture.md has the proof.
create table refold.inline_departures (
  name text collate "C" not null,
  version integer not null,
  -- folded events are at or below it, left out events above it
  position bigint not null,
  -- whether a writer that can't fold announced it
  passing boolean not null
);
create index inline_departures_by_version on refold.inline_departures (name, version);

-- Counts announcements. A sequence, because everybody sees it at once. It always has a value: no value means that the role may not read it.
create sequence refold.inline_leaves;
select nextval('refold.inline_leaves');

-- For writers whose role may not use the sequences.
create function refold.count_leave() returns bigint language sql volatile security definer set search_path = pg_catalog as $$
  select nextval('refold.inline_leaves')
$$;
create function refold.was_ever_live() returns boolean language sql volatile security definer set search_path = pg_catalog as $$
  select pg_sequence_last_value('refold.inline_lives') is not null
$$;

-- The gate's key: 21070 (0x524e) in the top 16 bits.
create function refold.inline_gate() returns bigint language sql immutable as $$
  select 21070::bigint << 48
$$;

-- The key of a version's leave lock: that of its version lock, with 21074 (0x5252) in the top 16 bits.
create function refold.inline_leave_key(lock_key bigint) returns bigint language sql immutable as $$
  select (21074::bigint << 48) | (lock_key & ((1::bigint << 48) - 1))
$$;

-- The leave locks that other transactions hold: announcements that may or may not commit.
create function refold.inline_leaving() returns bigint[] language sql volatile as $$
  select coalesce(array_agg(key), '{}')
  from refold.advisory_locks
  where key >> 48 = 21074
    and granted
    and pid is distinct from pg_backend_pid() -- a prepared transaction has no pid
$$;

-- Whether appends fold into a version.
create function refold.is_live(of_name text, of_version integer) returns boolean language sql stable as $$
  select
    exists (select from refold.inline_versions where name = of_name and version = of_version and status = 'live')
    and not exists (select from refold.inline_departures where name = of_name and version = of_version)
$$;

-- The position that a version has reached. A live version has folded everything that is committed; a leaving one, everything up to its departure.
create function refold.reached(of_name text, of_version integer, checkpoint bigint) returns bigint language sql stable as $$
  select case
    when exists (
      select
      from refold.inline_versions
      where name = of_name and version = of_version and status = 'live'
    )
    then greatest(
      checkpoint,
      coalesce(
        (select min(position) from refold.inline_departures where name = of_name and version = of_version),
        pg_sequence_last_value('refold.events_position_seq'),
        0
      )
    )
    else checkpoint
  end
$$;

-- Announces that appends stop folding into a version. Waits for nobody except refold.settle_inline. A rollback undoes it. Returns the number of
-- announcements so far; null if the version is not live.
create function refold.announce_leave(of_name text, of_version integer, passing boolean) returns bigint language plpgsql volatile as $$
declare
  key bigint;
  leaves bigint;
begin
  select refold.inline_leave_key(lock_key) into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return null;
  end if;
  -- The leave lock, to the end of this transaction: appends that enter meanwhile find it in refold.advisory_locks.
  perform pg_advisory_xact_lock_shared(key);
  if not refold.is_live(of_name, of_version) then
    return null;
  end if;
  leaves := refold.count_leave();
  -- The position is read after the announcement.
  insert into refold.inline_departures (name, version, position, passing)
  values (of_name, of_version, coalesce(pg_sequence_last_value('refold.events_position_seq'), 0), announce_leave.passing);
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return leaves;
end $$;

-- Ends a leave once no append is running that could have entered the version before it saw the announcement. The table is then the fold of the log
-- up to the lowest position of the departures, and the processor (refold.processors of migration 0007) continues from there. Returns whether the
-- version is out of `live`. If not, end the transaction and try again: no append enters a leaving version, so the locks become free.
create function refold.settle_inline(of_name text, of_version integer) returns boolean language plpgsql volatile as $$
declare
  key bigint;
  folded bigint;
  passed boolean;
begin
  select lock_key into key
  from refold.inline_versions
  where name = of_name and version = of_version and status = 'live';
  if not found then
    return true;
  end if;
  -- Without a departure, appends still enter: the lock would not become free, and they would wait for this transaction.
  if refold.is_live(of_name, of_version) then
    return false;
  end if;
  -- The version lock, exclusive: no append that folds is running. The leave lock, exclusive: no announcement is undecided. Both only if they are
  -- free, because a waiting exclusive lock would make every later append wait behind it.
  if not pg_try_advisory_xact_lock(key) or not pg_try_advisory_xact_lock(refold.inline_leave_key(key)) then
    return false;
  end if;
  with settled as (
    delete from refold.inline_departures
    where name = of_name and version = of_version
    returning position, passing
  )
  select min(position), bool_or(passing) into folded, passed from settled;
  if folded is null then
    return true; -- another transaction has settled it meanwhile
  end if;
  update refold.inline_versions
  -- The version joins again five seconds after that. One second is enough for an operator's step to begin.
  set status = 'building', passed_at = clock_timestamp() - case when passed then interval '0' else interval '4 seconds' end
  where name = of_name and version = of_version;
  update refold.processors
  set checkpoint = folded, epoch = epoch + 1, status = 'idle', error = null, updated_at = now()
  where name = of_name and version = of_version;
  perform pg_notify('refold_registry', of_name || '@' || of_version);
  return true;
end $$;
