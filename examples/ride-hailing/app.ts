import { defineConfig } from '../../src/index.ts';
import { driverV1 } from './driver.v1.ts';
import { acceptOrder, adjustPrice, cancelOrder, completeOrder, placeOrder } from './order.ts';
import { brokerOf, orderRelay } from './relay.ts';
import { rideOrderV1 } from './ride-order.v1.ts';
import { taxiImport, zoneImport } from './taxi-import.ts';
import { zoneV1 } from './zone.v1.ts';
import { zoneHourV1 } from './zone-hour.v1.ts';

const broker = brokerOf(process.env);

export default defineConfig({
  projections: [rideOrderV1, zoneHourV1, driverV1, zoneV1],
  commands: [placeOrder, adjustPrice, acceptOrder, completeOrder, cancelOrder],
  reactors: broker ? [orderRelay(broker)] : [],
  imports: [taxiImport, zoneImport],
});
