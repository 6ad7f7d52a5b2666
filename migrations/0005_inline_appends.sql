-- How appends enter inline projections: before they lock streams or draw positions, they lock the versions and rows into which they fold, or announce
-- that they can't fold.
--
-- Needs: 0003_registry, 0004_inline
-- Older processes: can run beside it

create function refold.refuse_isolation() returns void language plpgsql as $$
begin
  raise exception 'Where there are inline projections, events are appended in transactions that are READ COMMITTED, found %.', upper(current_setting('transaction_isolation'))
    using errcode = 'invalid_transaction_state', hint = 'Begin the transaction without another isolation level.';
end $$;

create function refold.refuse_left() returns void language plpgsql as $$
begin
  raise exception 'An inline version has left the appends since this one entered it.'
    using errcode = 'serialization_failure', hint = 'Append again.';
end $$;

-- Called by an append that folds nothing, before it locks streams or draws positions. Takes live versions of its families (null: of any family)
-- out of `live`, so that they miss nothing silently.
create function refold.pass_inline(of_families text[]) returns void language plpgsql volatile as $$
declare
  entry record;
  done text;
begin
  -- The gate, shared, to the end of the transaction: no version becomes live meanwhile.
  done := pg_advisory_xact_lock_shared(refold.inline_gate());
  -- The usual case: no version has ever been live. Without the privilege, the sequence seems to have no value, or before PostgreSQL 17 reading it
  -- fails.
  if has_sequence_privilege('refold.inline_lives'::regclass, 'usage, select') then
    if pg_sequence_last_value('refold.inline_lives') is null then
      return;
    end if;
  end if;
  -- The snapshot of another isolation level may be older than what is live.
  if current_setting('transaction_isolation') <> 'read committed' and refold.was_ever_live() then
    perform refold.refuse_isolation();
  end if;
  for entry in
    select name, version
    from refold.inline_versions
    where status = 'live' and (of_families is null or families && of_families)
    order by lock_key
  loop
    done := refold.announce_leave(entry.name, entry.version, true);
  end loop;
end $$;

-- Called by an append that can fold into the given versions, before it locks streams or draws positions. The first `cardinality(whole)` of them read
-- its events; the others are known and have nothing to fold. Returns the table to fold into for each version; null: don't fold.
--
-- `row_owners` and `row_keys`: the rows that its events touch, sorted by key. `whole_keys`: the rows locks of the versions; `whole`: whether to take
-- one exclusively, because the rows are too many or not known yet.
--
-- Announcements up to `leaves` are committed, so that they are visible below, or rolled back, or their lock is in `leaving`. If somebody is
-- leaving a version, this append leaves it, too, because it can't know whether the other one commits. If all announcements are over and
-- settled, the append is `quiet` and skips these checks; a session finds that out once per announcement. refold.append notices later ones
-- after it has drawn the positions.
--
-- Each statement sees everything that was committed before it. Loops, because joins with the arrays would be planned again each time.
create function refold.enter_inline(
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
    select name, version, lock_key, families && of_families as concerned
    from refold.inline_versions
    where status = 'live'
    order by lock_key
  loop
    if not quiet and not refold.is_live(entry.name, entry.version) then
      continue;
    end if;
    number := array_position(names, entry.name);
    while versions[number] <> entry.version loop
      number := array_position(names, entry.name, number + 1);
    end loop;
    if (number is null and entry.concerned) or (number <= cardinality(whole) and refold.inline_leave_key(entry.lock_key) = any (leaving)) then
      own_leave := refold.announce_leave(entry.name, entry.version, number is null);
      -- If another announcement came in between, refold.append notices.
      if own_leave = leaves + 1 then
        leaves := own_leave;
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
  end loop;
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
  return tables;
end $$;
