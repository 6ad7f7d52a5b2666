import type { OverviewPartsFragment } from '../gql/graphql.ts';
import { number, Time } from './format.tsx';
import { Notice } from './marks.tsx';

const home = 'default';

/** Where a version is, unless it is in the database of the log. */
export function storeText(store: string): string | undefined {
  return store === home ? undefined : `in the read store ${store}`;
}

/** Says that a list is not complete. */
export function StoresAway({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  const isOne = names.length === 1;
  return (
    <Notice
      tone="bad"
      title={`The read ${isOne ? 'store' : 'stores'} ${names.join(', ')} ${isOne ? 'does' : 'do'} not respond.`}
    >
      {isOne
        ? 'What it has is missing here. Its versions catch up by themselves when it responds.'
        : 'What they have is missing here. Their versions catch up by themselves when they respond.'}
    </Notice>
  );
}

/** What a store had when it last responded. */
export function LastKnown({
  store: { name, lastKnown },
}: {
  readonly store: Pick<OverviewPartsFragment['stores'][number], 'name' | 'lastKnown'>;
}) {
  if (!lastKnown || lastKnown.versions.length === 0) return null;
  return (
    <p>
      {name} when it last responded, <Time at={lastKnown.at} />:{' '}
      {lastKnown.versions
        .map(({ id, state, position }) => `${id} ${state.toLowerCase()} at ${number(position)}`)
        .join(', ')}
      .
    </p>
  );
}
