import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresBinaries } from './postgres-cluster.ts';

const programs = '/usr/lib/postgresql/15';
const controlFile = '/usr/share/postgresql/15/extension/citus.control';

/** Citus for Debian's PostgreSQL 15: installed, or in a folder that `REFOLD_CITUS_ENGINE` names, as an archive to unpack over the server. */
export type CitusEngine =
  | { readonly binaries: PostgresBinaries; readonly missing: undefined }
  | { readonly binaries: undefined; readonly missing: string };

/** Finds the engine, without an effect. `archive` is what `startCitusCluster` has to unpack first. */
export function findCitus(): CitusEngine & { readonly archive: string | undefined } {
  const none = { binaries: undefined, archive: undefined };
  const binaries = { initdb: `${programs}/bin/initdb`, postgres: `${programs}/bin/postgres` };
  if (!existsSync(binaries.postgres)) return { ...none, missing: `there is no PostgreSQL 15 in ${programs}` };
  if (existsSync(controlFile)) return { binaries, archive: undefined, missing: undefined };
  const archive = engineArchive();
  if (archive === undefined)
    return {
      ...none,
      missing: 'there is no engine in ../shared/engines/citus; REFOLD_CITUS_ENGINE names another folder',
    };
  if (process.getuid?.() !== 0) return { ...none, missing: `only root can unpack ${archive} over PostgreSQL 15` };
  return { binaries, archive, missing: undefined };
}

/** Says whether the tests over Citus run, or why they are left out. */
export function citusLine({ missing }: CitusEngine): string {
  if (missing === undefined) return 'Citus: found. Tests over a cluster of it run.';
  return `Citus: left out with the tests over it, because ${missing}.`;
}

function engineArchive(): string | undefined {
  const folders = [process.env.REFOLD_CITUS_ENGINE, join(import.meta.dirname, '../../../shared/engines/citus')];
  for (const folder of folders) {
    if (folder === undefined || !existsSync(folder)) continue;
    const name = readdirSync(folder).find((file) => /^citus-.*-pg15-.*\.tar\.xz$/.test(file));
    if (name !== undefined) return join(folder, name);
  }
  return undefined;
}
