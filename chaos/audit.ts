import type { Queryable } from '../src/store/statements/statement.ts';

/**
 * Records what the server sees, by triggers and in the application's own transactions: every change of a checkpoint, every new epoch and every
 * deleted dead letter. The session's name identifies the writer.
 */
export async function installAudit(db: Queryable): Promise<void> {
  for (const text of statements) await db.query({ text });
}

const statements = [
  'create schema chaos',
  `create table chaos.steps (
    number bigint generated always as identity primary key,
    name text not null,
    version integer not null,
    partition integer not null,
    epoch_before bigint not null,
    epoch bigint not null,
    checkpoint_before bigint not null,
    checkpoint bigint not null,
    owner text,
    status text not null,
    writer text not null default current_setting('application_name'),
    at timestamptz not null default clock_timestamp()
  )`,
  `create function chaos.note_step() returns trigger language plpgsql as $$
  begin
    insert into chaos.steps (name, version, partition, epoch_before, epoch, checkpoint_before, checkpoint, owner, status)
    values (
      new.name, new.version, new.partition, old.epoch, new.epoch, old.checkpoint, new.checkpoint, new.owner, new.status
    );
    return null;
  end $$`,
  `create trigger note_step after update on refold.processors
  for each row when (old.epoch <> new.epoch or old.checkpoint <> new.checkpoint)
  execute function chaos.note_step()`,
  `create function chaos.note_reactor_step() returns trigger language plpgsql as $$
  begin
    insert into chaos.steps (name, version, partition, epoch_before, epoch, checkpoint_before, checkpoint, owner, status)
    values (new.name, 0, 0, old.epoch, new.epoch, old.checkpoint, new.checkpoint, new.owner, new.status);
    return null;
  end $$`,
  `create trigger note_step after update on refold.reactors
  for each row when (old.epoch <> new.epoch or old.checkpoint <> new.checkpoint)
  execute function chaos.note_reactor_step()`,
  `create table chaos.messages (
    number bigint generated always as identity primary key,
    id text not null,
    position bigint not null,
    attempt integer not null,
    writer text not null default current_setting('application_name'),
    at timestamptz not null default clock_timestamp()
  )`,
  `create table chaos.gone_letters (
    number bigint generated always as identity primary key,
    name text not null,
    version integer not null,
    table_name text not null,
    key jsonb,
    position bigint not null,
    failed boolean not null,
    writer text not null default current_setting('application_name')
  )`,
  `create function chaos.note_letter() returns trigger language plpgsql as $$
  begin
    insert into chaos.gone_letters (name, version, table_name, key, position, failed)
    values (old.name, old.version, old.table_name, old.key, old.position, old.error is not null);
    return null;
  end $$`,
  `create trigger note_letter after delete on refold.dead_letters
  for each row execute function chaos.note_letter()`,
];

/** A change of a processor's or a reactor's (version 0) checkpoint or epoch, as the server recorded it. */
export interface AuditedStep {
  /** The name of the store that has it. */
  readonly store: string;
  readonly number: bigint;
  readonly name: string;
  readonly version: number;
  readonly partition: number;
  readonly epochBefore: bigint;
  readonly epoch: bigint;
  readonly checkpointBefore: bigint;
  readonly checkpoint: bigint;
  readonly owner: string | null;
  readonly status: string;
  readonly writer: string;
  /** Milliseconds since 1970, by the server's clock. */
  readonly at: number;
}

interface AuditedStore {
  readonly name: string;
  readonly db: Queryable;
}

export async function readSteps({ name, db }: AuditedStore, after = 0n): Promise<AuditedStep[]> {
  return db.query<AuditedStep>({
    text: `
      select
        $2::text as store,
        number,
        name,
        version,
        partition,
        epoch_before as "epochBefore",
        epoch,
        checkpoint_before as "checkpointBefore",
        checkpoint,
        owner,
        status,
        writer,
        (extract(epoch from at) * 1000)::float8 as at
      from chaos.steps
      where number > $1
      order by number`,
    values: [after, name],
  });
}

/** The steps of all stores. */
export async function readStepsOf(stores: readonly AuditedStore[]): Promise<AuditedStep[]> {
  return (await Promise.all(stores.map((store) => readSteps(store)))).flat();
}

/** A deleted dead letter, as the server recorded it. */
export interface GoneLetter {
  readonly name: string;
  readonly version: number;
  readonly tableName: string;
  readonly key: string | null;
  readonly position: bigint;
  readonly failed: boolean;
  readonly writer: string;
}

export async function readGoneLetters(db: Queryable): Promise<GoneLetter[]> {
  return db.query<GoneLetter>({
    text: `
      select name, version, table_name as "tableName", key::text, position, failed, writer
      from chaos.gone_letters
      order by number`,
  });
}

/** A message that a reactor has sent to the outside. */
export interface SentMessage {
  /** `reactor/event id` */
  readonly id: string;
  /** Of the event. */
  readonly position: bigint;
  readonly attempt: number;
  readonly writer: string;
  /** Milliseconds since 1970, by the server's clock. */
  readonly at: number;
}

export async function readMessages(db: Queryable): Promise<SentMessage[]> {
  return db.query<SentMessage>({
    text: `
      select id, position, attempt, writer, (extract(epoch from at) * 1000)::float8 as at
      from chaos.messages
      order by number`,
  });
}
