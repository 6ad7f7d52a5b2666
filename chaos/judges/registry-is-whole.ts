import { readRegistry } from '../../src/store/registry/registry.ts';
import type { Judge, JudgedStore } from './judge.ts';

interface Transition {
  readonly name: string;
  readonly version: number;
  readonly from: string | null;
  readonly to: string;
}

export const registryIsWhole: Judge = {
  name: 'registry-is-whole',
  promise: 'the audit log leads to the state of each version, and each view shows the highest active version',
  async differences({ stores }) {
    return (await Promise.all(stores.map(differencesIn))).flat();
  },
};

async function differencesIn({ db }: JudgedStore): Promise<readonly string[]> {
  const found: string[] = [];
  const versions = await readRegistry(db);
  const states = new Map<string, string>();
  const transitions = await db.query<Transition>({
    text: 'select name, version, from_state as from, to_state as to from refold.transitions order by id',
  });
  for (const { name, version, from, to } of transitions) {
    const id = `${name}@${version}`;
    const before = states.get(id) ?? null;
    if (from !== before) found.push(`${id} went from ${from} to ${to}, but was ${before}`);
    states.set(id, to);
  }
  for (const { name, version, state } of versions) {
    const logged = states.get(`${name}@${version}`);
    if (logged !== state) found.push(`${name}@${version} is ${state}, but ${logged} in the audit log`);
  }
  const views = await db.query<{ name: string; tables: string[] }>({
    text: `
        select view_name as name, array_agg(distinct table_name::text) as tables
        from information_schema.view_table_usage
        where view_schema = 'read_models'
        group by view_name`,
  });
  for (const name of new Set(versions.map((version) => version.name))) {
    const active = versions.filter((version) => version.name === name && version.state === 'active').at(-1);
    const shown = views.find((view) => view.name === name)?.tables.join();
    if (shown !== active?.tableName) found.push(`the view ${name} shows ${shown}, but ${active?.tableName} is active`);
  }
  return found;
}
