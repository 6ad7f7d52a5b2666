import { existsSync } from 'node:fs';
import type { TestProject } from 'vitest/node';
import { serve, startFrom } from '../support/postgres-for-the-run.ts';

const directory = '/usr/lib/postgresql/15/bin';

/** Vitest's global setup of the system run: the server, and every test's own server, is Debian's PostgreSQL 15. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (!existsSync(`${directory}/postgres`)) {
    throw new Error(
      `Expected PostgreSQL 15 in ${directory}, but it is not there. Install it with: ` +
        'apt-get update && apt-get install --no-install-recommends postgresql-15',
    );
  }
  const server = await startFrom({ initdb: `${directory}/initdb`, postgres: `${directory}/postgres` });
  return serve(project, server, { again: true, underRoles: true });
}
