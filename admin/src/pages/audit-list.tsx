import type { AuditLineFragment } from '../gql/graphql.ts';
import { number, Time } from '../parts/format.tsx';
import type { TableColumn } from '../parts/table.tsx';
import { to } from '../router.ts';

const common: readonly TableColumn<AuditLineFragment>[] = [
  { title: 'What', cell: ({ operation }) => operation },
  {
    title: 'Positions',
    isNumber: true,
    isExtra: true,
    cell: ({ fromPosition, toPosition }) =>
      [fromPosition, toPosition].flatMap((each) => (each ? [number(each)] : [])).join(' → ') || '–',
  },
  { title: 'Who', cell: ({ actor }) => actor },
  { title: 'Why', isText: true, cell: ({ reason }) => reason || '–' },
];

const when: TableColumn<AuditLineFragment> = { title: 'When', isName: true, cell: ({ at }) => <Time at={at} /> };

/** Who did what to one thing. */
export const historyColumns = [when, ...common];

/** Who did what to anything. */
export const auditColumns: readonly TableColumn<AuditLineFragment>[] = [
  when,
  {
    title: 'Of',
    cell: ({ of, isReactor }) => <a href={to([isReactor ? 'reactors' : 'versions', of])}>{of}</a>,
  },
  ...common,
];
