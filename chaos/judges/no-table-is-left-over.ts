import type { Judge, JudgedStore } from './judge.ts';

export const noTableIsLeftOver: Judge = {
  name: 'no-table-is-left-over',
  promise: 'every table belongs to a version, a rebuild or a snapshot, or waits to be dropped',
  async differences({ stores }) {
    return (await Promise.all(stores.map(leftOver))).flat();
  },
};

async function leftOver({ db }: JudgedStore): Promise<readonly string[]> {
  const rows = await db.query<{ name: string }>({
    text: `
        select table_name::text as name
        from information_schema.tables
        where table_schema = 'read_models' and table_type = 'BASE TABLE'
        except
        select table_name from refold.projections where state <> 'retired'
        except
        select rebuilds.table_name from refold.rebuilds join refold.projections using (name, version) where state <> 'retired'
        except
        select table_name from refold.table_snapshots
        except
        select table_name from refold.old_tables
        order by name`,
  });
  return rows.map(({ name }) => `read_models.${name} belongs to nothing, and nothing will drop it`);
}
