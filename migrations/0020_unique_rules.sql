-- Unique values of inline projections: an append that no version can check is refused, whoever writes it.
--
-- Needs: 0002_horizon, 0003_registry, 0005_inline_appends, 0006_appends
-- Older processes: can run beside it

-- There are no rules until a process that knows this migration has registered its projections.

alter table refold.inline_versions
  -- that it reads, as 'family.type' with the names in the log
  add column types text[] not null default '{}',
  -- its unique columns, such as '{email,"number within tenant"}'; null: none
  add column unique_columns text[],
  -- Whose appends its unique values refuse while it is not live. Null: nobody's, it has no unique columns. 'pending': nobody's yet, because the
  -- active version lacks the rule. 'declared': those of processes that declare it; it was never live. 'in force': everybody's.
  add column rule text check (rule in ('pending', 'declared', 'in force')),
  -- when its status changed
  add column changed_at timestamptz not null default now();

comment on column refold.inline_versions.types is 'The event types that it reads, as ''family.type'' with the names in the log.';
comment on column refold.inline_versions.unique_columns is 'Its unique columns; null if it has none.';
comment on column refold.inline_versions.rule is 'Whose appends are refused while its unique values can''t be checked: ''pending'' nobody''s yet, ''declared'' those of processes that declare it, ''in force'' everybody''s; null if it has no unique columns.';
comment on column refold.inline_versions.changed_at is 'When its status changed.';

-- As the index that it replaces: every append looks these versions up.
create index inline_versions_entered on refold.inline_versions (lock_key) where status = 'live' or rule is not null;
drop index refold.inline_versions_live;

-- A rule is in force from the moment that its version is live for the first time.
create function refold.note_inline_status() returns trigger language plpgsql as $$
begin
  if new.status <> old.status then
    new.changed_at := clock_timestamp();
  end if;
  if new.status = 'live' and new.rule = 'declared' then
    new.rule := 'in force';
  end if;
  return new;
end $$;
create trigger note_inline_status
before update on refold.inline_versions
for each row execute function refold.note_inline_status();

-- A rule that the version before lacks begins with the activation.
create function refold.begin_rule() returns trigger language plpgsql as $$
begin
  update refold.inline_versions
  set rule = case status when 'live' then 'in force' else 'declared' end
  where name = new.name and version = new.version and rule = 'pending';
  return null;
end $$;
create trigger begin_rule
after update of state on refold.projections
for each row when (new.state = 'active') execute function refold.begin_rule();

-- A rule ends with the last version that holds it.
create function refold.inherit_rule() returns trigger language plpgsql as $$
begin
  update refold.inline_versions
  set rule = 'in force'
  where name = old.name and unique_columns @> old.unique_columns;
  return null;
end $$;
create trigger inherit_rule
after delete on refold.inline_versions
for each row when (old.rule = 'in force') execute function refold.inherit_rule();

-- Refuses an append of these types. The detail names them, as a list in JSON.
create function refold.refuse_unchecked(refused text[]) returns void language plpgsql as $$
declare
  found record;
begin
  select name || '@' || version as id, status, refold.is_live(name, version) as live, changed_at
  into found
  from refold.inline_versions
  where rule is not null and types && refused
  order by refold.is_live(name, version), rule = 'in force' desc, name, version desc
  limit 1;
  raise exception '%', case
    when found.live then format(
      'The unique values of %s are checked as events are appended, and this writer can''t do that, because it doesn''t declare the version. Nothing was written.',
      found.id
    )
    else format(
      'The unique values of %s can''t be checked at the moment: since %s its rows don''t commit with appends. Nothing was written.',
      found.id, to_char(found.changed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    )
  end
    using
      errcode = 'RF003',
      detail = to_json(refused)::text,
      hint = case
        when found.live then format('Append these events in a process that declares %s; an older program needs the release that does. Event types: %s.', found.id, array_to_string(refused, ', '))
        else format('Append again in a moment. If this persists, `refold status` says what %s waits for. Event types: %s.', found.id, array_to_string(refused, ', '))
      end;
end $$;

-- Called by an append that folds nothing, before it locks streams or draws positions. Takes live versions of its families (null: of any family)
-- out of `live`, so that they miss nothing silently. Versions whose rule is in force stay: returns the types, such as 'account.Opened', of which
-- this append may write no event.
drop function refold.pass_inline(text[]);
create function refold.pass_inline(of_families text[]) returns text[] language plpgsql volatile as $$
declare
  entry record;
  done text;
  unchecked text[] := '{}';
begin
  -- The gate, shared, to the end of the transaction: no version becomes live meanwhile.
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  -- The usual case: no version has ever been live. Without the privilege, the sequence seems to have no value, or before PostgreSQL 17 reading it
  -- fails.
  if has_sequence_privilege('refold.inline_lives'::regclass, 'usage, select') then
    if pg_sequence_last_value('refold.inline_lives') is null then
      return unchecked;
    end if;
  end if;
  -- The snapshot of another isolation level may be older than what is live.
  if current_setting('transaction_isolation') <> 'read committed' and refold.was_ever_live() then
    perform refold.refuse_isolation();
  end if;
  for entry in
    select name, version, status, rule, types
    from refold.inline_versions
    where (status = 'live' or rule is not null)
      and (of_families is null or families && of_families)
    order by lock_key
  loop
    if entry.rule = 'in force' then
      unchecked := unchecked || entry.types;
    elsif entry.status = 'live' then
      done := refold.announce_leave(entry.name, entry.version, true);
    end if;
  end loop;
  return unchecked;
end $$;

-- As in migration 0005, which describes the arguments. Sets `refold.unchecked` to the types of which the append may write no event: a version with
-- a rule reads them, this append does not fold into it, and into no other version of the projection that has the same unique columns.
create or replace function refold.enter_inline(
  of_families text[], names text[], versions int[], whole_keys bigint[], whole boolean[], row_owners int[], row_keys bigint[],
  lock_timeout_ms int
) returns text[] language plpgsql volatile
  set jit = off -- as in refold.append
as $$
declare
  tables text[] := array_fill(null::text, array[cardinality(names)]);
  leaves bigint;
  own_leave bigint;
  leaving bigint[] := '{}';
  quiet boolean;
  entry record;
  number int;
  numbers int[] := '{1}';
  some_live boolean := false;
  some_unchecked boolean := false;
  checked text[];
  unchecked text[] := '{}';
  done text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform refold.refuse_isolation();
  end if;
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true);
  end if;
  -- The gate, shared: no version becomes live until this transaction ends.
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  leaves := pg_sequence_last_value('refold.inline_leaves');
  if leaves is null then
    raise exception 'permission denied for sequence inline_leaves' using errcode = 'insufficient_privilege';
  end if;
  quiet := coalesce(leaves::text = current_setting('refold.leaves_over', true), false);
  if not quiet then
    leaving := refold.inline_leaving();
    quiet := leaving = '{}' and not exists (select from refold.inline_departures);
    if quiet then
      done := set_config('refold.leaves_over', leaves::text, false);
    end if;
  end if;
  for entry in
    select name, version, lock_key, families && of_families as concerned, status = 'live' as live, rule
    from refold.inline_versions
    where status = 'live' or rule is not null
    order by lock_key
  loop
    number := array_position(names, entry.name);
    while versions[number] <> entry.version loop
      number := array_position(names, entry.name, number + 1);
    end loop;
    if not entry.live or (not quiet and not refold.is_live(entry.name, entry.version)) then
      null; -- appends don't fold into it
    elsif (number is null and entry.concerned) or (number <= cardinality(whole) and refold.inline_leave_key(entry.lock_key) = any (leaving)) then
      -- With a rule in force, it leaves only if another version checks the append; see below.
      if entry.rule is distinct from 'in force' then
        own_leave := refold.announce_leave(entry.name, entry.version, number is null);
        -- If another announcement came in between, refold.append notices.
        if own_leave = leaves + 1 then
          leaves := own_leave;
        end if;
      end if;
    elsif number <= cardinality(whole) then
      -- The version lock, shared. Whether the version is still live is read after it is held.
      done := pg_advisory_xact_lock_shared(entry.lock_key);
      tables[number] := (
        select table_name
        from refold.projections
        where name = entry.name
          and version = entry.version
          and exists (
            select from refold.inline_versions where name = entry.name and version = entry.version and status = 'live'
          )
      );
      if not quiet and not refold.is_live(entry.name, entry.version) then
        tables[number] := null;
      end if;
      some_live := some_live or tables[number] is not null;
    end if;
    if entry.rule is not null and entry.rule <> 'pending' and entry.concerned and tables[number] is null then
      some_unchecked := some_unchecked or number <= cardinality(whole) or (number is null and entry.rule = 'in force');
    end if;
  end loop;
  if some_unchecked then
    for entry in
      select name, version, types, unique_columns, rule
      from refold.inline_versions
      where rule in ('declared', 'in force')
        and families && of_families
      order by lock_key
    loop
      number := (
        select known.number
        from unnest(names, versions) with ordinality as known (name, version, number)
        where known.name = entry.name and known.version = entry.version
      );
      if number > cardinality(whole) or tables[number] is not null or (number is null and entry.rule = 'declared') then
        continue;
      end if;
      checked := array(
        select unnest(other.types)
        from unnest(names, versions, tables) as folded (name, version, table_name)
        join refold.inline_versions as other using (name, version)
        where folded.table_name is not null
          and other.name = entry.name
          and other.unique_columns @> entry.unique_columns
      );
      unchecked := unchecked || array(select unnest(entry.types) except select unnest(checked));
      if entry.types && checked then
        own_leave := refold.announce_leave(entry.name, entry.version, number is null);
        if own_leave = leaves + 1 then
          leaves := own_leave;
        end if;
      end if;
    end loop;
  end if;
  if some_live then
    -- The rows locks in the order of their keys, then the row locks in the order of theirs: two appends never wait for each other in a circle.
    if cardinality(whole) > 1 then
      numbers := array(select of_rows.number from unnest(whole_keys) with ordinality of_rows (key, number) order by key);
    end if;
    foreach number in array numbers loop
      if tables[number] is null then
        continue;
      elsif whole[number] then
        done := pg_advisory_xact_lock(whole_keys[number]);
      else
        done := pg_advisory_xact_lock_shared(whole_keys[number]);
      end if;
    end loop;
    for touched in 1 .. cardinality(row_keys) loop
      if tables[row_owners[touched]] is not null then
        done := pg_advisory_xact_lock(row_keys[touched]);
      end if;
    end loop;
  end if;
  done := set_config('refold.entered', of_families::text, true);
  done := set_config('refold.folding', case when some_live then leaves::text else '' end, true);
  done := set_config('refold.unchecked', unchecked::text, true);
  return tables;
end $$;

-- Tags the transaction of each writer, other programs included.
--
-- The first tag of a transaction is its lowest, and serves for all of its inserts: one lock per insert would fill the server's lock table.
-- The local setting that remembers it is undone by a rollback to a savepoint exactly when the lock is.
create or replace function refold.tag_writer() returns trigger language plpgsql as $$
declare
  last bigint;
  done text; -- assigned instead of `perform`, which runs a statement and takes ten times as long
begin
  -- An insert without refold.append: nobody knows the families of its rows yet, so live inline versions of all families stop folding. What may
  -- not be among the rows is checked by refold.check_insert when they are there.
  if coalesce(current_setting('refold.appending', true), '') = '' then
    done := set_config('refold.unchecked', refold.pass_inline(null)::text, true);
    done := set_config('refold.inserting_after', coalesce(pg_sequence_last_value('refold.events_position_seq'), 0)::text, true);
  end if;
  if coalesce(current_setting('refold.tag', true), '') = '' then
    last := coalesce(pg_sequence_last_value('refold.events_position_seq'), 0);
    done := pg_advisory_xact_lock_shared((21062::bigint << 48) | last);
    done := set_config('refold.tag', last::text, true);
  end if;
  return null;
end $$;

-- Refuses an insert without refold.append if a rule in force is about an event of it. The rows of this transaction are those of which the
-- transaction is in progress, and visible here. A statement trigger without a transition table, because that one would copy each row of every append.
-- With the owner's privileges: a writer needs no right to read events.
create function refold.check_insert() returns trigger language plpgsql security definer set search_path = pg_catalog as $$
declare
  unchecked text[] := current_setting('refold.unchecked')::text[];
  epoch bigint;
begin
  if unchecked <> '{}' then
    epoch := pg_current_xact_id()::text::bigint >> 32 << 32;
    unchecked := array(
      select distinct event.family || '.' || event.type
      from refold.events as event
      where event.position > current_setting('refold.inserting_after')::bigint
        and event.family || '.' || event.type = any (unchecked)
        and pg_xact_status((epoch | event.xmin::text::bigint)::text::xid8) = 'in progress'
    );
    if unchecked <> '{}' then
      perform refold.refuse_unchecked(unchecked);
    end if;
  end if;
  return null;
end $$;
create trigger check_insert
after insert on refold.events
for each statement when (coalesce(current_setting('refold.appending', true), '') = '') execute function refold.check_insert();

-- As in migration 0006, which describes the arguments.
create or replace function refold.append(
  families text[],
  stream_ids text[],
  stream_sizes int[],
  keys text[],
  part_appends int[],
  part_streams int[],
  part_expected bigint[],
  part_sizes int[],
  part_offsets int[],
  new_events json,
  inputs text[] default null,
  lock_timeout_ms int default null,
  out starts bigint[],
  out positions bigint[],
  out recorded timestamptz,
  out verdicts int[],
  out actuals bigint[],
  out earlier jsonb
) language plpgsql volatile
  -- If a session has switched off what the planner needs here (`enable_sort`, …), the plan gets an enormous cost, and a server with JIT would
  -- compile it each time: a hundred times the append. The setting costs at most 3 % of the function.
  set jit = off
as $$
declare
  versions  bigint[]; -- of the streams, as if all appends were written
  all_fit   boolean;
  used_keys boolean := false;
  folding   text := ''; -- the number of announced leaves when it entered; empty if it folds nothing
  unchecked text[]; -- types that can't be appended now, because nothing checks their unique values
  done      text;
begin
  if lock_timeout_ms is not null then
    done := set_config('lock_timeout', lock_timeout_ms::text, true); -- for this transaction, which is this statement
  end if;
  -- A caller that can fold has called refold.enter_inline with these families just before. All others pass.
  if coalesce(current_setting('refold.entered', true), '') = '' then
    unchecked := refold.pass_inline(families);
  else
    unchecked := current_setting('refold.unchecked')::text[];
    if not families <@ current_setting('refold.entered')::text[] then
      unchecked := unchecked || refold.pass_inline(families);
    end if;
    folding := current_setting('refold.folding');
    done := set_config('refold.entered', '', true);
  end if;
  if unchecked <> '{}' then
    unchecked := array(
      select distinct event.family || '.' || event.type
      from json_to_recordset(new_events) as event (family text, type text)
      where event.family || '.' || event.type = any (unchecked)
    );
    if unchecked <> '{}' then
      perform refold.refuse_unchecked(unchecked);
    end if;
  end if;
  if keys is not null then
    earlier := refold.claim_append_keys(keys);
    used_keys := earlier <> '{}' or (select count(key) > count(distinct key) from unnest(keys) key);
  end if;

  -- Locks every stream, and creates missing ones. Assumes the usual case, that every version fits, and corrects it below if not. A single part
  -- has a simpler statement.
  if cardinality(part_streams) = 1 then
    insert into refold.streams (family, stream_id, version)
    values (families[1], stream_ids[1], stream_sizes[1])
    on conflict (family, stream_id) do update set version = streams.version + excluded.version
    returning array[version], array[version - stream_sizes[1]] into versions, starts;

    all_fit := refold.version_fits(part_expected[1], starts[1]);
  else
    with locked as (
      insert into refold.streams (family, stream_id, version)
      select family, stream_id, size
      from unnest(families, stream_ids, stream_sizes) wanted (family, stream_id, size)
      on conflict (family, stream_id) do update set version = streams.version + excluded.version
      returning version
    )
    select array_agg(version) into versions from locked;

    select array_agg(start), bool_and(refold.version_fits(expected, start))
    into starts, all_fit
    from (
      select expected, versions[stream] - stream_sizes[stream] + part_offset as start
      from unnest(part_streams, part_expected, part_offsets) part (stream, expected, part_offset)
    ) part;
  end if;

  -- A refused version, a key that was used before or twice, or a stream that was created although it is only checked.
  if not all_fit or used_keys or 0 = any (versions) then
    select decision.* into starts, verdicts, actuals
    from refold.decide_appends(
      (select array_agg(version - size) from unnest(versions, stream_sizes) stream (version, size)),
      keys, earlier, part_appends, part_streams, part_expected, part_sizes
    ) decision;
    perform refold.take_back(families, stream_ids, stream_sizes, part_streams, part_sizes, starts);
  end if;

  done := set_config('refold.appending', 'yes', true); -- tells the tag trigger that inline versions are handled
  -- The rows come in the order of the array, and positions are drawn in the order of the rows. Their time is read once, when the first row is
  -- computed, so after the tag was taken: if no tag is left from before a time, no event can still appear that was recorded before that time.
  with inserted as (
    insert into refold.events
      (stream_position, recorded_at, id, payload_version, family, stream_id, type, payload, metadata)
    select
      starts[event.part] + event.number, (select clock_timestamp()), event.id, event.version,
      event.family, event.stream, event.type, event.payload, event.metadata
    from json_to_recordset(new_events) as event (
      part int, number int, id uuid, version smallint,
      family text, stream text, type text, payload jsonb, metadata jsonb
    )
    where starts[event.part] is not null
    returning position, recorded_at
  )
  select array_agg(position), coalesce(min(recorded_at), clock_timestamp()) into positions, recorded from inserted;
  done := set_config('refold.appending', '', true);
  -- An inline version was left between entering and drawing the positions: the caller enters again.
  if folding <> '' and folding::bigint <> pg_sequence_last_value('refold.inline_leaves') then
    perform refold.refuse_left();
  end if;

  if positions is not null then
    done := pg_notify('refold_events', positions[cardinality(positions)]::text);
  end if;
  if keys is not null then
    perform refold.store_append_results(
      families, stream_ids, keys, part_appends, part_streams, part_sizes, starts, positions, recorded, inputs
    );
  end if;
end $$;
